// The catalog and the two examples as their users run them, on loopback, all on one stack at once. nmap, sslscan and
// testssl.sh are the real ones; for tools that cannot be had here programs of test/fixtures/tools stand in, which speak
// their command line and refuse what it has not. Every survey ends Completed with the inventory that is known before.
import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { recordTypes } from '#sonar/contracts/records.ts';
import { SonarProcesses } from './sonar-processes.ts';
import {
  front,
  type Surveyed,
  secure,
  serveHosts,
  shell,
  toolsFolder,
  writeTemplates,
} from './surveyed-hosts.ts';

const root = join(import.meta.dirname, '..', '..');
const certificate = '396e9ed9999ddf2bde4eafbddde82144261d3207b1633f23c529cafd87b02953';

const isThere = (...programs: string[]): boolean =>
  programs.every((program) => spawnSync(program, ['--version'], { stdio: 'ignore' }).error === undefined);
// CI installs these and must have them; elsewhere a survey is run where its tools are.
const withNmap = isThere('nmap') || process.env.CI ? test : test.skip;
const withTlsTools = isThere('nmap', 'sslscan', 'testssl') || process.env.CI ? test : test.skip;

let surveyed: Surveyed;
let sonar: SonarProcesses;
let domainInputs: string[];
beforeAll(async () => {
  surveyed = await serveHosts();
  sonar = await SonarProcesses.prepare();
  const tools = toolsFolder(join(sonar.directory, 'tools'), surveyed);
  await sonar.serve('all');
  await sonar.worker('surveyor', { slots: 6, path: `${tools}:${process.env.PATH ?? ''}` });
  writeTemplates(join(sonar.directory, 'nuclei-templates'));
  domainInputs = ['--input', 'domains=sonar.test', '--allow', 'sonar.test', '--deny', 'vpn.sonar.test'];
});
afterAll(async () => {
  await sonar?.stop();
  await surveyed?.[Symbol.asyncDispose]();
});

/** Applies a definition with the tag of this test file for all of its own, and starts it by the command line. */
async function start(path: string, words: string[]): Promise<string> {
  const text = readFileSync(join(root, path), 'utf8');
  const name = /^name: (\S+)$/m.exec(text)?.[1] ?? '';
  const file = join(sonar.directory, `${name}.yaml`);
  writeFileSync(file, text.replaceAll(/^( +tags: )\[[a-z]+\]$/gm, `$1[${sonar.tag}]`));
  const applied = await sonar.cli(['definition', 'apply', file]);
  expect(applied).toMatchObject({ code: 0 });
  const started = await sonar.cli(['--json', 'scan', 'start', name, ...words]);
  expect(started).toMatchObject({ code: 0 });
  return (JSON.parse(started.stdout) as { id: string }).id;
}

/** How the scan ended, and `TYPE KEY` of all that it brought. */
async function outcome(id: string) {
  const detail = await sonar.ended(id);
  const keys = await Promise.all(
    recordTypes.map(async (type) =>
      (await sonar.client.inventory.take({ type, scan: id }, 100)).items.map(({ key }) => `${type} ${key}`),
    ),
  );
  return {
    status: detail.status,
    failed: detail.steps.map((step) => step.counts.failed),
    completed: Object.fromEntries(detail.steps.map(({ step, counts }) => [step, counts.completed])),
    refused: Object.fromEntries(
      detail.steps.flatMap((step) => (step.refused > 0 ? [[step.step, step.refused]] : [])),
    ),
    keys: keys.flat().toSorted(),
  };
}

const allPorts = (): string => Object.values(surveyed.ports).join(',');
const known = (...keys: string[]): string[] => keys.toSorted();
const names = ['sonar.test', 'www.sonar.test', 'api.sonar.test', 'shell.sonar.test'];

test('passive-domain-survey', async () => {
  const id = await start('catalog/passive-domain-survey.yaml', [
    ...domainInputs,
    '--input',
    `resolvers=${surveyed.resolver}`,
  ]);
  expect(await outcome(id)).toEqual({
    status: 'Completed',
    failed: [0, 0, 0],
    completed: { subdomains: 1, names: 1, resolve: 1 },
    // vpn.sonar.test is denied, www.elsewhere.test is nobody's business here.
    refused: { resolve: 2 },
    keys: known(
      // What subfinder says of the domain is recorded, also what is out of scope: nothing is sent there.
      ...['www', 'api', 'shell', 'gone', 'vpn'].map((name) => `domain ${name}.sonar.test`),
      'domain sonar.test',
      'domain www.elsewhere.test',
      ...[front, secure, shell].map((ip) => `address ${ip}`),
      `dns sonar.test A ${front}`,
      `dns www.sonar.test A ${front}`,
      `dns api.sonar.test A ${secure}`,
      `dns shell.sonar.test A ${shell}`,
      'dns sonar.test MX mail.sonar.test',
      'dns sonar.test NS ns.sonar.test',
      'dns sonar.test TXT v=spf1 -all',
    ),
  });
});
