// The catalog and the two examples as their users run them, on loopback, all on one stack at once. nmap, sslscan and
// testssl.sh are the real ones; for tools that cannot be had here programs of test/fixtures/tools stand in, which speak
// their command line and refuse what it has not. Every survey ends Completed with the inventory that is known before.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
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
const hasNmap = isThere('nmap') || Boolean(process.env.CI);
const hasTlsTools = isThere('nmap', 'sslscan', 'testssl') || Boolean(process.env.CI);
const withNmap = hasNmap ? describe : describe.skip;
const withTlsTools = hasTlsTools ? describe : describe.skip;

let surveyed: Surveyed;
let sonar: SonarProcesses;
/** Definition → scan. */
const scans = new Map<string, string>();
beforeAll(async () => {
  surveyed = await serveHosts();
  sonar = await SonarProcesses.prepare();
  const tools = toolsFolder(join(sonar.directory, 'tools'), surveyed);
  await sonar.serve('all');
  await sonar.worker('surveyor', { slots: 6, path: `${tools}:${process.env.PATH ?? ''}` });
  writeTemplates(join(sonar.directory, 'nuclei-templates'));
  writeFileSync(join(sonar.directory, 'words.txt'), 'about\nadmin\nbackup\n');
  await Promise.all(surveys().map(({ path, words }) => start(path, words)));
});
afterAll(async () => {
  await sonar?.stop();
  await surveyed?.[Symbol.asyncDispose]();
});

const input = (name: string, ...values: string[]): string[] =>
  values.flatMap((value) => ['--input', `${name}=${value}`]);

/** The longest first: testssl.sh waits a lot. */
function surveys(): { path: string; words: string[] }[] {
  const { ports, resolver } = surveyed;
  const all = input('ports', Object.values(ports).join(','));
  const some = input('ports', `${ports.tls},${ports.web}`);
  const networks = ['--allow', '127.0.51.0/29', ...input('ranges', '127.0.51.0/29')];
  const domain = ['--allow', 'sonar.test', '--deny', 'vpn.sonar.test', ...input('domains', 'sonar.test')];
  const resolving = input('resolvers', resolver);
  const urls = input('urls', `http://www.sonar.test:${ports.web}/`, `https://api.sonar.test:${ports.tls}/`);
  const targets = (...ips: string[]): string[] => ['--allow', '127.0.51.0/29', ...input('targets', ...ips)];
  return [
    { path: 'catalog/tls-audit.yaml', runs: hasTlsTools, words: [...targets(secure, front), ...some] },
    {
      path: 'catalog/full-domain-survey.yaml',
      runs: hasNmap,
      words: [...domain, '--allow', '127.0.51.0/29', ...resolving, ...all],
    },
    { path: 'catalog/cidr-survey.yaml', runs: hasNmap, words: [...networks, ...all] },
    { path: 'catalog/passive-domain-survey.yaml', runs: true, words: [...domain, ...resolving] },
    {
      path: 'catalog/url-list-survey.yaml',
      runs: true,
      words: ['--allow', 'sonar.test', '--file', 'words=words.txt', ...urls],
    },
    { path: 'catalog/loopback-survey.yaml', runs: true, words: [...targets(front), ...all] },
    { path: 'test/fixtures/examples/domain-survey.yaml', runs: true, words: domain },
    { path: 'test/fixtures/examples/cidr-survey.yaml', runs: hasNmap, words: [...networks, ...all] },
  ].filter(({ runs }) => runs);
}

/** Applies a definition with the tag of this test file for all of its own, and starts it by the command line. */
async function start(path: string, words: string[]): Promise<void> {
  const text = readFileSync(join(root, path), 'utf8');
  // The example and the catalog have one name: both are there, one as its own definition.
  const own = /^name: (\S+)$/m.exec(text)?.[1] ?? '';
  const name = path.includes('examples') ? `example-${own}` : own;
  const file = join(sonar.directory, `${name}.yaml`);
  writeFileSync(
    file,
    text.replaceAll(/^( +tags: )\[[a-z]+\]$/gm, `$1[${sonar.tag}]`).replace(/^name: \S+$/m, `name: ${name}`),
  );
  const applied = await sonar.cli(['definition', 'apply', file]);
  expect(applied).toMatchObject({ code: 0 });
  const started = await sonar.cli(['--json', 'scan', 'start', name, ...words]);
  expect(started).toMatchObject({ code: 0 });
  scans.set(name, (JSON.parse(started.stdout) as { id: string }).id);
}

/** How the scan ended, and `TYPE KEY` of all that it brought. */
async function outcome(name: string) {
  const id = scans.get(name) ?? '';
  const detail = await sonar.ended(id);
  const keys = await Promise.all(
    recordTypes.map(async (type) =>
      (await sonar.client.inventory.take({ type, scan: id }, 100)).items.map(({ key }) => `${type} ${key}`),
    ),
  );
  return {
    status: detail.status,
    failed: detail.steps.map((step) => step.counts.failed),
    completed: Object.fromEntries(
      detail.steps.map(({ step, counts }) => [step, counts.completed - counts.noWork]),
    ),
    refused: Object.fromEntries(
      detail.steps.flatMap((step) => (step.refused > 0 ? [[step.step, step.refused]] : [])),
    ),
    keys: keys.flat().toSorted(),
  };
}

const known = (...keys: string[]): string[] => keys.toSorted();
const addressesOf = (...ips: string[]): string[] => ips.map((ip) => `address ${ip}`);
const domainsOf = (...names: string[]): string[] => names.map((name) => `domain ${name}`);
/** What subfinder's sources say is recorded, also what is out of scope: nothing is sent there. */
const found = domainsOf(
  ...['www', 'api', 'shell', 'gone', 'vpn'].map((name) => `${name}.sonar.test`),
  'www.elsewhere.test',
);
const pointing = [
  `dns sonar.test A ${front}`,
  `dns www.sonar.test A ${front}`,
  `dns api.sonar.test A ${secure}`,
  `dns shell.sonar.test A ${shell}`,
];
const services = (): string[] => [
  `service ${front}/tcp/${surveyed.ports.web}`,
  `service ${secure}/tcp/${surveyed.ports.tls}`,
  `service ${shell}/tcp/${surveyed.ports.ssh}`,
];

test('passive-domain-survey', async () => {
  expect(await outcome('passive-domain-survey')).toEqual({
    status: 'Completed',
    failed: [0, 0, 0],
    completed: { subdomains: 1, names: 1, resolve: 1 },
    // vpn.sonar.test is denied, www.elsewhere.test is nobody's business here.
    refused: { resolve: 2 },
    keys: known(
      ...found,
      'domain sonar.test',
      ...addressesOf(front, secure, shell),
      ...pointing,
      'dns sonar.test MX mail.sonar.test',
      'dns sonar.test NS ns.sonar.test',
      'dns sonar.test TXT v=spf1 -all',
    ),
  });
});

withNmap('with nmap itself', () => {
  test('full-domain-survey', async () => {
    const { web, tls } = surveyed.ports;
    const fronts = [`http://sonar.test:${web}`, `http://www.sonar.test:${web}`];
    const apis = [`https://api.sonar.test:${tls}`];
    expect(await outcome('full-domain-survey')).toEqual({
      status: 'Completed',
      failed: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
      completed: {
        subdomains: 1,
        names: 1,
        resolve: 1,
        ports: 1,
        services: 3,
        certificates: 1,
        web: 1,
        crawl: 1,
        pictures: 1,
        findings: 1,
      },
      refused: { resolve: 2 },
      keys: known(
        ...found,
        'domain sonar.test',
        ...addressesOf(front, secure, shell),
        ...pointing,
        ...services(),
        `certificate ${certificate}`,
        ...[...fronts, ...apis].flatMap((origin) => [
          `endpoint ${origin}/`,
          `endpoint ${origin}/about`,
          `technology ${origin}/ nginx`,
          `finding nuclei admin-panel ${new URL(origin).host} ${origin}/admin`,
        ]),
      ),
    });
  });
});

withNmap('with nmap itself', () => {
  test('cidr-survey', async () => {
    const { web, tls } = surveyed.ports;
    expect(await outcome('cidr-survey')).toEqual({
      status: 'Completed',
      failed: [0, 0, 0, 0],
      completed: { ports: 1, services: 3, certificates: 1, web: 1 },
      refused: {},
      keys: known(
        ...addressesOf(front, secure, shell),
        ...services(),
        `certificate ${certificate}`,
        `endpoint http://${front}:${web}/`,
        `endpoint https://${secure}:${tls}/`,
        `technology http://${front}:${web}/ nginx`,
        `technology https://${secure}:${tls}/ nginx`,
      ),
    });
    const { items } = await sonar.client.inventory.take(
      { type: 'service', scan: scans.get('cidr-survey') ?? '' },
      10,
    );
    const said = Object.fromEntries(
      items.map(({ fields }) => [fields.address, [fields.service, fields.product]]),
    );
    expect(said).toEqual({
      [front]: ['http', 'nginx'],
      [secure]: ['http', 'nginx'],
      [shell]: ['ssh', 'OpenSSH'],
    });
  });
});

test('url-list-survey', async () => {
  const { web, tls } = surveyed.ports;
  expect(await outcome('url-list-survey')).toEqual({
    status: 'Completed',
    failed: [0, 0, 0, 0, 0],
    completed: { web: 1, crawl: 1, paths: 2, pictures: 1, findings: 1 },
    refused: {},
    keys: known(
      ...addressesOf(front, secure),
      ...domainsOf('www.sonar.test', 'api.sonar.test'),
      ...services().slice(0, 2),
      `certificate ${certificate}`,
      ...[`http://www.sonar.test:${web}`, `https://api.sonar.test:${tls}`].flatMap((origin) => [
        // The word `backup` is not there; /app.js is found by the crawl alone, /admin by the word list alone.
        ...['', 'about', 'app.js', 'admin'].map((path) => `endpoint ${origin}/${path}`),
        `technology ${origin}/ nginx`,
        `finding nuclei admin-panel ${new URL(origin).host} ${origin}/admin`,
      ]),
    ),
  });
});

withTlsTools('with nmap, sslscan and testssl.sh themselves', () => {
  test('tls-audit', async () => {
    const { tls, web } = surveyed.ports;
    const at = `${secure}:${tls}`;
    expect(await outcome('tls-audit')).toEqual({
      status: 'Completed',
      failed: [0, 0, 0, 0],
      // The open port without TLS is looked at by sslscan, and goes no further.
      completed: { ports: 2, tls: 2, certificate: 1, vulnerabilities: 1 },
      refused: {},
      keys: known(
        ...addressesOf(front, secure),
        `service ${front}/tcp/${web}`,
        `service ${secure}/tcp/${tls}`,
        `certificate ${certificate}`,
        `finding sslscan certificate:self-signed ${at}`,
        ...['LUCKY13', 'cert_chain_of_trust', 'cert_revocation', 'cert_trust', 'cert_validityPeriod'].map(
          (rule) => `finding testssl ${rule} ${at}`,
        ),
      ),
    });
  });
});

test('loopback-survey', async () => {
  const { web } = surveyed.ports;
  expect(await outcome('loopback-survey')).toEqual({
    status: 'Completed',
    failed: [0, 0, 0],
    completed: { ports: 1, web: 1, report: 1 },
    refused: {},
    keys: known(...addressesOf(front), `service ${front}/tcp/${web}`, `endpoint http://${front}:${web}/`),
  });
});

test('the example domain-survey as it stands', async () => {
  expect(await outcome('example-domain-survey')).toEqual({
    status: 'Completed',
    failed: [0, 0, 0, 0],
    completed: { subdomains: 1, resolve: 1, web: 1, findings: 1 },
    refused: { resolve: 2 },
    keys: known(
      ...found,
      ...addressesOf(front, secure, shell),
      ...pointing.slice(1),
      `service ${front}/tcp/80`,
      `service ${secure}/tcp/443`,
      ...['http://www.sonar.test', 'https://api.sonar.test'].flatMap((origin) => {
        const { hostname, protocol } = new URL(origin);
        const target = `${hostname}:${protocol === 'http:' ? 80 : 443}`;
        return [
          `endpoint ${origin}/`,
          `finding nuclei admin-panel ${target} ${origin}/admin`,
          // Unlike the catalog's definitions it leaves no template out.
          `finding nuclei slowloris ${target} ${origin}/`,
        ];
      }),
    ),
  });
});

withNmap('with nmap itself', () => {
  test('the example cidr-survey as it stands', async () => {
    expect(await outcome('example-cidr-survey')).toEqual({
      status: 'Completed',
      failed: [0, 0, 0],
      completed: { ports: 1, services: 3, report: 1 },
      refused: {},
      keys: known(...addressesOf(front, secure, shell), ...services()),
    });
  });
});
