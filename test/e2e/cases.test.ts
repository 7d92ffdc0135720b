// Inputs that broke other tools (test/fixtures/cases), each through `sonar parse` and through a whole scan: the records
// that land, what is bad and why, and the state of the scan. And targets that would be options or commands elsewhere.
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RecordType } from '#sonar/contracts/records.ts';
import type { TaskView } from '#sonar/contracts/scan-api.ts';
import { SonarProcesses } from './sonar-processes.ts';

const fixtures = join(import.meta.dirname, '..', 'fixtures');
let sonar: SonarProcesses;
beforeAll(async () => {
  sonar = await SonarProcesses.prepare();
  await sonar.serve('all');
  await sonar.worker('first', { slots: 4 });
  cpSync(join(fixtures, 'cases'), join(sonar.directory, 'cases'), { recursive: true });
  mkdirSync(join(sonar.directory, 'tools'));
  for (const [name, text] of Object.entries(tools)) writeFileSync(join(sonar.directory, 'tools', name), text);
});
afterAll(() => sonar?.stop());

const tools = {
  // Says which arguments it was given, as the title of a page.
  'argv.mjs': `const title = JSON.stringify(process.argv.slice(2));
console.log(JSON.stringify({ url: 'http://127.0.0.1/' + encodeURIComponent(title), title }));`,
  // Rows whose values would be options, several arguments, or a shell's work.
  'rows.mjs': `for (const v of ['-oN /tmp/x', '--script=x', 'a b', 'two\\nlines', '$(id)', '\`id\`; id | id', '\${item}', '"', "'"])
  console.log(JSON.stringify({ v }));`,
};
const said = `outputs: {said: {stdout: true, read: {format: jsonl, record: endpoint, fields: {url: url, title: title}}}}`;

async function apply(name: string, text: string): Promise<void> {
  const file = join(sonar.directory, `${name}.yaml`);
  writeFileSync(file, `sonar: 1\nname: ${name}\n${text.replaceAll('TAG', sonar.tag)}`);
  expect(await sonar.cli(['definition', 'apply', file])).toMatchObject({ code: 0 });
}

async function started(name: string, ...words: string[]): Promise<string> {
  const answer = await sonar.cli(['--json', 'scan', 'start', name, ...words]);
  expect(answer).toMatchObject({ code: 0 });
  return (JSON.parse(answer.stdout) as { id: string }).id;
}

const tasksOf = (scan: string, step: string): Promise<TaskView[]> =>
  Array.fromAsync(sonar.client.tasks.each({ scan, step }));
const keysOf = async (scan: string, type: RecordType): Promise<string[]> =>
  (await sonar.client.inventory.take({ type, scan }, 100)).items.map(({ key }) => key).toSorted();

/** The title of a page is what `argv.mjs` was given. */
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const read = [
  { file: 'nmap-control-char.xml', reader: 'nmap-xml', records: 4, bad: 0, warnings: 1 },
  { file: 'nmap-truncated.xml', reader: 'nmap-xml', records: 2, bad: 0, warnings: 1 },
  { file: 'nuclei-odd-row.jsonl', reader: 'nuclei', records: 6, bad: 0, warnings: 0 },
  { file: 'services-duplicate-key.jsonl', reader: 'naabu', records: 5, bad: 0, warnings: 0 },
  { file: 'hostile-bytes.jsonl', reader: 'httpx', records: 14, bad: 1, warnings: 0 },
] as const;

describe('files that tools leave', () => {
  const scans = new Map<string, string>();
  beforeAll(async () => {
    for (const { file, reader } of read) {
      const name = file.replace(/\..*/, '');
      await apply(
        name,
        `files: {cases: ./cases}\nsteps:\n  read:\n    tags: [TAG]\n    command: [cat, "\${file.cases}/${file}"]\n    outputs: {said: {stdout: true, read: ${reader}}}\n`,
      );
      scans.set(file, await started(name, '--allow', '127.0.0.1'));
    }
  });

  test.each(read)('$file: sonar parse and a scan say the same', async ({ file, reader, ...counts }) => {
    const parsed = await sonar.cli(['--json', 'parse', join('cases', file), '--as', reader]);
    expect(parsed.code).toBe(0);
    expect((JSON.parse(parsed.stdout) as { counts: unknown }).counts).toMatchObject(counts);
    const detail = await sonar.ended(scans.get(file) ?? '');
    expect(detail.status).toBe('Completed');
    const [task] = await tasksOf(detail.id, 'read');
    // A warning of a scan is also how a bad record is shown.
    expect(task).toMatchObject({ status: 'Completed', records: counts.records, badRecords: counts.bad });
    expect(task?.warnings).toHaveLength(counts.warnings + counts.bad);
  });

  test('a control character in XML: both hosts land, and the task has one warning', async () => {
    const scan = scans.get('nmap-control-char.xml') ?? '';
    expect(await keysOf(scan, 'service')).toEqual(['198.51.100.7/tcp/9100', '198.51.100.8/tcp/22']);
    const [task] = await tasksOf(scan, 'read');
    expect(task?.warnings[0]).toContain('not well-formed XML');
  });

  test('XML that is cut: the first host lands, the task says so, and it was not tried again', async () => {
    const scan = scans.get('nmap-truncated.xml') ?? '';
    expect(await keysOf(scan, 'address')).toEqual(['198.51.100.9']);
    expect(await keysOf(scan, 'service')).toEqual(['198.51.100.9/tcp/443']);
    const [task] = await tasksOf(scan, 'read');
    expect(task).toMatchObject({ attempts: 1 });
    expect(task?.warnings[0]).toContain('was cut');
  });

  test('a row without a key and one with null: three findings', async () => {
    expect(await keysOf(scans.get('nuclei-odd-row.jsonl') ?? '', 'finding')).toHaveLength(3);
  });

  test('one key twice in a batch: two services, and the later line wins', async () => {
    const scan = scans.get('services-duplicate-key.jsonl') ?? '';
    const { items } = await sonar.client.inventory.take({ type: 'service', scan }, 10);
    expect(Object.fromEntries(items.map(({ key, fields }) => [key, fields.version]))).toEqual({
      '198.51.100.20/tcp/80': '2.0',
      '198.51.100.21/tcp/22': undefined,
    });
  });

  test('hostile bytes: every JSON line lands, harmless; the bad line is counted and sampled', async () => {
    const scan = scans.get('hostile-bytes.jsonl') ?? '';
    const { items } = await sonar.client.inventory.take({ type: 'endpoint', scan }, 10);
    const titles = Object.fromEntries(items.map(({ key, fields }) => [key.slice(7, 8), fields.title]));
    expect(titles).toEqual({
      a: 'ok',
      b: 'nul \uFFFD here',
      c: 'lone \uFFFD surrogate',
      d: 'latin1 \uFFFD',
      e: '<script>alert(1)</script>',
      f: '=HYPERLINK("http://x")',
      g: 'ok',
    });
    const [task] = await tasksOf(scan, 'read');
    expect(task?.warnings[0]).toContain('the line is no JSON: not json at all');
  });
});

describe('nothing', () => {
  test('an empty file as input, as an output, and an All step behind: no work, Completed', async () => {
    await apply(
      'nothing',
      `inputs: {names: {type: lines, required: true}}
files: {cases: ./cases}
steps:
  over:
    tags: [TAG]
    foreach: {in: inputs.names}
    command: [echo, "\${item}"]
  list:
    tags: [TAG]
    command: [cat, "\${file.cases}/empty.txt"]
    outputs: {rows: {stdout: true, read: lines}}
  each:
    tags: [TAG]
    needs: {list: single}
    foreach: {in: list.rows}
    command: [echo, "\${item.line}"]
    outputs: {said: {stdout: true, read: lines}}
  all:
    tags: [TAG]
    needs: {each: all}
    inputs: {said: {from: each.said}}
    command: [cat, "\${in.said}"]
`,
    );
    const detail = await sonar.ended(
      await started('nothing', '--allow', '127.0.0.1', '--input', `names=@${join('cases', 'empty.txt')}`),
    );
    expect(detail.status).toBe('Completed');
    const counts = Object.fromEntries(
      detail.steps.map(({ step, counts: of }) => [step, [of.completed - of.noWork, of.noWork]]),
    );
    expect(counts).toEqual({ over: [0, 1], list: [1, 0], each: [0, 1], all: [0, 1] });
  });
});

describe('hostile targets', () => {
  const literal = ['"quoted name"', '$(id)', '`id`', 'a.example.test;id', 'good.example.test'];

  beforeAll(async () => {
    await apply(
      'hostile',
      `inputs: {names: {type: lines, required: true}}
files: {cases: ./cases, tools: ./tools}
steps:
  given:
    tags: [TAG]
    foreach: {in: inputs.names}
    command: [node, "\${file.tools}/argv.mjs", "\${item}", "--name=\${item}"]
    ${said}
  aimed:
    tags: [TAG]
    foreach: {in: inputs.names}
    target: \${item}
    command: [node, "\${file.tools}/argv.mjs", "\${item}"]
    ${said}
  list:
    tags: [TAG]
    command: [cat, "\${file.cases}/targets-hostile.txt"]
    outputs: {rows: {stdout: true, read: lines}}
  upstream:
    tags: [TAG]
    needs: {list: single}
    foreach: {in: list.rows}
    command: [node, "\${file.tools}/argv.mjs", upstream, "\${item.line}"]
    ${said}
  listed:
    tags: [TAG]
    needs: {list: single}
    inputs: {targets: {from: list.rows, pick: line}}
    target: \${in.targets}
    command: [cat, "\${in.targets}"]
    outputs: {said: {stdout: true, read: lines}}
`,
    );
  });

  async function expectHarmless(scan: string): Promise<void> {
    const detail = await sonar.ended(scan);
    expect(detail.status).toBe('Completed');
    const { items } = await sonar.client.inventory.take({ type: 'endpoint', scan }, 100);
    const argvs = items.map(({ fields }) => textOf(fields.title));
    expect(argvs.toSorted()).toEqual(
      [
        ...literal.flatMap((text) => [
          [text, `--name=${text}`],
          ['upstream', text],
        ]),
        ['good.example.test'],
      ]
        .map((argv) => JSON.stringify(argv))
        .toSorted(),
    );
    // The option is no argument: its tasks are refused, and the refusal names it.
    for (const step of ['given', 'upstream']) {
      const refused = (await tasksOf(scan, step)).filter(({ status }) => status === 'Failed');
      expect(refused).toMatchObject([
        { failure: { code: 'item_refused', message: expect.stringContaining('-oN') } },
      ]);
    }
    const steps = Object.fromEntries(detail.steps.map((step) => [step.step, step]));
    expect(steps.aimed).toMatchObject({ refused: 5, counts: { completed: 1, failed: 0 } });
    expect(steps.aimed?.note).toContain('a.example.test;id');
    expect(steps.listed).toMatchObject({ refused: 5, counts: { completed: 1, failed: 0 } });
  }

  test('by API: one literal argument or a refusal that names it', async () => {
    const names = ['good.example.test', 'a.example.test;id', '$(id)', '-oN', '`id`', '"quoted name"'];
    const scope = { allow: ['example.test'], deny: [] };
    const { id } = await sonar.client.startScan({ definition: 'hostile', inputs: { names }, scope });
    await expectHarmless(id);
  });

  test('by file: one literal argument or a refusal that names it', async () => {
    const file = `names=@${join('cases', 'targets-hostile.txt')}`;
    await expectHarmless(await started('hostile', '--allow', 'example.test', '--input', file));
  });

  test('rows that would be options, several arguments or commands: one literal argument or a refusal', async () => {
    await apply(
      'hostile-rows',
      `files: {tools: ./tools}
steps:
  list:
    tags: [TAG]
    command: [node, "\${file.tools}/rows.mjs"]
    outputs: {rows: {stdout: true, read: jsonl}}
  each:
    tags: [TAG]
    needs: {list: single}
    foreach: {in: list.rows}
    command: [node, "\${file.tools}/argv.mjs", "\${item.v}", "v=\${item.v}"]
    ${said}
`,
    );
    const detail = await sonar.ended(await started('hostile-rows', '--allow', '127.0.0.1'));
    expect(detail.status).toBe('Completed');
    const { items } = await sonar.client.inventory.take({ type: 'endpoint', scan: detail.id }, 100);
    const values = ['a b', '$(id)', '`id`; id | id', '${item}', '"', "'"];
    expect(items.map(({ fields }) => textOf(fields.title)).toSorted()).toEqual(
      values.map((value) => JSON.stringify([value, `v=${value}`])).toSorted(),
    );
    const refused = (await tasksOf(detail.id, 'each')).filter(({ status }) => status === 'Failed');
    expect(refused.map(({ failure }) => failure?.message)).toEqual([
      expect.stringContaining('-oN /tmp/x'),
      expect.stringContaining('--script=x'),
      // No host, name or path has a line end; one in a row is no honest value.
      expect.stringContaining('line end'),
    ]);
  });
});

describe('a definition with ten mistakes', () => {
  const lines = [
    'sonar: 2',
    'name: Bad Name',
    'inputs:',
    '  hosts: {type: hostz, required: yes}',
    'steps:',
    '  ports:',
    '    tags: []',
    '    foreach: {in: inputs.host}',
    '    command: [nmap, "${itm}"]',
    '    timeout: 30',
    '    outputs: {xml: {path: ../nmap.xml, read: nmap}}',
  ];
  // One for each mistake, in the order of the file.
  const expected = [1, 2, 4, 4, 7, 8, 9, 10, 11, 11];

  test('gets ten messages in one go from `definition validate`, each with its line', async () => {
    writeFileSync(join(sonar.directory, 'wrong.yaml'), lines.join('\n'));
    const told = await sonar.cli(['definition', 'validate', 'wrong.yaml']);
    expect(told.code).toBe(1);
    const places = told.stdout.split('\n').flatMap((line) => /^wrong\.yaml:(\d+):\d+/.exec(line)?.[1] ?? []);
    expect(places.map(Number)).toEqual(expected);
  });

  test('gets the same ten from the api, and nothing is applied', async () => {
    const answer = await fetch(`${sonar.apiUrl}/v1/definitions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${sonar.adminToken}`, 'content-type': 'application/json' },
      body: JSON.stringify({ source: lines.join('\n') }),
    });
    const problem = (await answer.json()) as { problems?: { line: number }[] };
    expect(answer.status).toBe(422);
    expect(problem.problems?.map(({ line }) => line).toSorted((a, b) => a - b)).toEqual(expected);
    expect((await sonar.client.definitions.take({}, 100)).items.map(({ name }) => name)).not.toContain(
      'Bad Name',
    );
  });
});
