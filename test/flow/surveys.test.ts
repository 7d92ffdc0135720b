// The two example definitions as they stand, from inputs to the end: what each command is given, and what comes of what
// it leaves. The tools' outputs are made after their documentation.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defaultWorkspace } from '#sonar/contracts/ids.ts';
import { applyDefinition } from '#sonar/flow/apply-definition.ts';
import { startScan } from '#sonar/flow/start-scan.ts';
import { confirmFiles, placesForFiles } from '#sonar/flow/store-files.ts';
import type { ScanRow } from '#sonar/stores/scans.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { exampleText } from '../fixtures/examples.ts';
import { argvOf, grantedInput } from '../fixtures/granted-inputs.ts';
import { type Laboratory, type Outputs, openLaboratory } from '../fixtures/laboratory.ts';
import type { LiveWorker } from '../fixtures/live-worker.ts';
import { put, sha256, useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const jsonl = (...rows: unknown[]): string => rows.map((row) => `${JSON.stringify(row)}\n`).join('');

interface Ran {
  argv: string[];
  /** Input → path → content. */
  inputs: Record<string, Record<string, string>>;
}

/** Runs all tasks of a step with what `answer` makes of each command. */
async function runStep(
  lab: Laboratory,
  worker: LiveWorker,
  scan: ScanRow,
  step: string,
  answer: (ran: Ran) => Outputs,
): Promise<Ran[]> {
  await lab.plan(scan);
  await lab.place();
  const runs: Ran[] = [];
  for (const attempt of await lab.published(scan, step)) {
    const argv = await argvOf(lab, attempt);
    const inputs: Ran['inputs'] = {};
    for (const [, name] of argv.flatMap((text) => [...text.matchAll(/<([^>]+)>/g)]))
      if (name !== undefined && !/^(found|dns|web|open|xml|html)$/.test(name))
        inputs[name] = await grantedInput(lab, attempt, name);
    runs.push({ argv, inputs });
    await lab.run(attempt, worker, answer({ argv, inputs }));
  }
  await lab.finalize();
  return runs;
}

async function ended(lab: Laboratory, scan: ScanRow): Promise<string | undefined> {
  await lab.plan(scan);
  await lab.settle(scan);
  const [row] = await clone.database.rows<{ status: string }>(
    query`select status from sonar.scan where scan_id = ${scan.scan_id}`,
  );
  return row?.status;
}

async function domainSurvey(lab: Laboratory, domains: string[]): Promise<ScanRow> {
  const template = { sha256: sha256('id: x'), size: 5 };
  const [place] = await placesForFiles(lab, defaultWorkspace, [template]);
  if (place) {
    await put(place, Buffer.from('id: x'));
    await confirmFiles(lab, defaultWorkspace, [{ ...template, upload: place.upload }]);
  }
  await applyDefinition(lab.database, defaultWorkspace, exampleText('domain-survey'), {
    templates: { kind: 'directory', entries: [{ path: 'http/x.yaml', sha256: template.sha256 }] },
  });
  const { scan } = await startScan(lab.database, defaultWorkspace, {
    definition: 'domain-survey',
    scope: { allow: ['example.com', 'example.org'], deny: ['secret.example.com'] },
    inputs: { domains },
  });
  return scan;
}

const hostsOf = (name: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `h${String(index).padStart(3, '0')}.${name}`);

test('domain-survey', async () => {
  const lab = openLaboratory(clone, objects);
  const worker = await lab.worker({
    tags: ['subfinder', 'dnsx', 'httpx', 'nuclei'],
    name: 'surveyor',
  });
  const scan = await domainSurvey(lab, ['example.com', 'example.org', 'elsewhere.net']);
  const found: Record<string, string[]> = {
    'example.com': [
      ...hostsOf('example.com', 150),
      'h000.example.com',
      'secret.example.com',
      'x.elsewhere.net',
    ],
    'example.org': [...hostsOf('example.org', 10), 'h001.example.com'],
  };
  const subdomains = await runStep(lab, worker, scan, 'subdomains', ({ argv }) => ({
    found: {
      'found.jsonl': jsonl(
        ...(found[argv[2] ?? ''] ?? []).map((host) => ({ host, input: argv[2], source: 'crtsh' })),
      ),
    },
  }));
  expect(subdomains.map(({ argv }) => argv)).toEqual(
    ['example.com', 'example.org'].map((domain) => ['subfinder', '-d', domain, '-oJ', '-o', '<found>']),
  );

  const live = [...hostsOf('example.com', 150), ...hostsOf('example.org', 10)];
  const [resolve] = await runStep(lab, worker, scan, 'resolve', () => ({
    dns: { 'dns.jsonl': jsonl(...live.map((host) => ({ host, a: ['192.0.2.1'], status_code: 'NOERROR' }))) },
  }));
  expect(resolve?.inputs.hosts?.['hosts.txt']).toBe(live.map((host) => `${host}\n`).join(''));

  const web = await runStep(lab, worker, scan, 'web', ({ inputs }) => ({
    web: {
      'web.jsonl': jsonl(
        ...(inputs._batch?.['batch.txt'] ?? '')
          .split('\n')
          .filter((host) => host !== '' && !host.startsWith('h1'))
          .map((host) => ({
            url: `https://${host}`,
            input: host,
            host: '192.0.2.1',
            port: '443',
            status_code: 200,
          })),
      ),
    },
  }));
  expect(web.map(({ inputs }) => inputs._batch?.['batch.txt']?.split('\n').length)).toEqual([101, 61]);

  const findings = await runStep(lab, worker, scan, 'findings', () => ({}));
  const sizes = findings.map(({ inputs }) => (inputs._batch?.['batch.txt']?.split('\n').length ?? 0) - 1);
  expect(sizes.toSorted((a, b) => b - a)).toEqual([50, 50, 10]);
  expect(findings[0]).toMatchObject({
    argv: ['nuclei', '-l', '<_batch>', '-t', '<_file-templates>', '-jsonl', '-o', '<found>'],
    inputs: { '_file-templates': { 'http/x.yaml': 'id: x' } },
  });

  expect(await ended(lab, scan)).toBe('Completed');
  const steps = await clone.database.rows(query`
    select step, refused::integer from sonar.scan_step where scan_id = ${scan.scan_id} order by ordinal`);
  expect(steps).toEqual([
    { step: 'subdomains', refused: 1 },
    { step: 'resolve', refused: 2 },
    { step: 'web', refused: 0 },
    { step: 'findings', refused: 0 },
  ]);
});

test('domain-survey of a domain with nothing in it comes to an end without further commands', async () => {
  const lab = openLaboratory(clone, objects);
  const worker = await lab.worker({ tags: ['subfinder', 'dnsx', 'httpx', 'nuclei'], name: 'surveyor' });
  const scan = await domainSurvey(lab, ['example.com']);
  await runStep(lab, worker, scan, 'subdomains', () => ({}));
  expect(await ended(lab, scan)).toBe('Completed');
  expect((await lab.tasks(scan)).map((task) => [task.step, task.status, task.no_work])).toEqual([
    ['subdomains', 'Completed', false],
    ['resolve', 'Completed', true],
    ['web', 'Completed', true],
    ['findings', 'Completed', true],
  ]);
});

test('cidr-survey', async () => {
  const lab = openLaboratory(clone, objects);
  const worker = await lab.worker({ tags: ['naabu', 'nmap', 'report'], name: 'surveyor' });
  await applyDefinition(lab.database, defaultWorkspace, exampleText('cidr-survey'));
  const { scan } = await startScan(lab.database, defaultWorkspace, {
    definition: 'cidr-survey',
    scope: { allow: ['10.0.0.0/16'], deny: ['10.0.2.0/24'] },
    inputs: { ranges: ['10.0.0.0/22', '10.0.9.8/30'] },
  });
  const ports = await runStep(lab, worker, scan, 'ports', ({ argv }) => ({
    open:
      argv[2] === '10.0.0.0/24'
        ? {
            'open.jsonl': jsonl(
              { host: '10.0.0.5', ip: '10.0.0.5', port: 22 },
              { host: '10.0.0.6', ip: '10.0.0.6', port: 443 },
              { host: '10.0.0.5', ip: '10.0.0.5', port: 80 },
            ),
          }
        : { 'open.jsonl': '' },
  }));
  expect(ports.map(({ argv }) => argv[2])).toEqual([
    '10.0.0.0/24',
    '10.0.1.0/24',
    '10.0.3.0/24',
    '10.0.9.8/30',
  ]);

  const nmap = readFileSync(join(__dirname, '../fixtures/cases/nmap-control-char.xml'), 'utf8');
  const services = await runStep(lab, worker, scan, 'services', () => ({ xml: { 'nmap.xml': nmap } }));
  expect(services.map(({ argv }) => argv)).toEqual([
    ['nmap', '-sV', '-p', '22,80', '-oX', '<xml>', '10.0.0.5'],
    ['nmap', '-sV', '-p', '443', '-oX', '<xml>', '10.0.0.6'],
  ]);

  const [report] = await runStep(lab, worker, scan, 'report', () => ({ html: { 'report.html': '<p>' } }));
  expect(report).toMatchObject({ argv: ['report', '<scans>', '<html>'] });
  expect(Object.keys(report?.inputs.scans ?? {})).toEqual(['000000/nmap.xml', '000001/nmap.xml']);
  expect(await ended(lab, scan)).toBe('Completed');
});
