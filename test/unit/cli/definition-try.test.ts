// One step on one item here: the same rendering, running and reading as in a scan.
import { readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CommandLine } from './command-line.ts';

let cli: CommandLine;
beforeEach(() => {
  cli = new CommandLine();
});
afterEach(() => {
  cli.remove();
});
const put = (name: string, content: string): void => writeFileSync(join(cli.folder, name), content);
const allTrials = (): string[] => readdirSync(tmpdir()).filter((name) => name.startsWith('sonar-try-'));
// Somebody else's, or of a run that was killed.
const foreign = new Set(allTrials());
const trials = (): string[] => allTrials().filter((name) => !foreign.has(name));

/** A definition whose one step has the given fields; its scope is example.com. */
const withStep = (fields: string): void =>
  put(
    'd.yaml',
    `sonar: 1
name: d
inputs: {hosts: {type: hosts, default: [a.example.com, b.example.com]}, words: {type: file}}
files: {list: ./list.txt}
scope: {allow: [example.com]}
steps:
  list: {tags: [t], command: [list], outputs: {rows: {path: r, read: jsonl}, raw: {path: raw}}}
  only: {tags: [t], ${fields}}
`,
  );
const run = (...words: string[]) => cli.run('definition', 'try', 'd.yaml', '--step', 'only', ...words);
const json = async (...words: string[]) => {
  const outcome = await run('--json', ...words);
  return { ...outcome, tried: JSON.parse(outcome.out || outcome.err) };
};
const records = 'read: {format: jsonl, record: domain, fields: {name: host}}';

test('the command is shown and run, and its outputs become records and bad records with reasons', async () => {
  withStep(
    `foreach: {in: inputs.hosts}, target: "\${item}", command: [sh, -c, "echo said; echo '{\\"host\\": \\"'$0'\\"}' > $1; echo nonsense >> $1", "\${item}", "\${out.found}"], outputs: {found: {path: f.jsonl, ${records}}}`,
  );
  const { code, out, err } = await run('--item', 'www.example.com');
  expect([code, err]).toEqual([0, '']);
  expect(out).toContain('only on www.example.com');
  expect(out).toContain('"www.example.com"');
  expect(out).toContain('    said');
  expect(out).toMatch(/domain +www\.example\.com/);
  expect(out).toContain('bad: the line is no JSON: nonsense');
  expect(out).toContain('1 row, 1 record, 1 bad');
  const { tried } = await json();
  expect(tried).toMatchObject({
    item: 'a.example.com',
    outcome: 'completed',
    exitCode: 0,
    stdout: 'said\n',
    files: [{ output: 'found', path: 'f.jsonl', counts: { records: 1, bad: 1 }, poisoned: false }],
  });
  expect(trials()).toEqual([]);
});

test.each([
  ['outside the scope', 'evil.org', 'outside the scope'],
  ['no host', '-x', 'no host, URL or CIDR'],
])('an item %s is refused, and nothing runs', async (_what, item, why) => {
  withStep('foreach: {in: inputs.hosts}, target: "${item}", command: [touch, "${item}"]');
  const { code, tried } = await json(`--item=${item}`);
  expect(code).toBe(4);
  expect(tried).toMatchObject({ outcome: 'refused', argv: [], failure: { code: 'item_refused' } });
  expect(tried.failure.message).toContain(why);
});

test('an item that would become an option is refused', async () => {
  withStep('foreach: {in: inputs.hosts}, command: [echo, "${item}"]');
  const { code, tried } = await json('--item=-rf');
  expect([code, tried.outcome]).toEqual([4, 'refused']);
});

test.each([
  [
    'a bad exit',
    'command: [sh, -c, "echo no >&2; exit 3"]',
    { outcome: 'failed', exitCode: 3, stderr: 'no\n' },
  ],
  [
    'a timeout',
    'timeout: 1s, command: [sleep, "60"]',
    { outcome: 'timed_out', failure: { code: 'command_timed_out' } },
  ],
  [
    'a missing program',
    'command: [no-such-program-here]',
    { outcome: 'not_started', failure: { code: 'command_not_found' } },
  ],
  [
    'a missing output',
    'command: ["true"], outputs: {o: {path: o}}',
    { outcome: 'failed', failure: { code: 'output_missing' } },
  ],
  [
    'an output that is a link',
    'command: [ln, -s, /etc/passwd, "${out.o}"], outputs: {o: {path: o}}',
    { outcome: 'failed', failure: { code: 'output_refused' } },
  ],
])('%s exits 4 and says why', async (_what, fields, expected) => {
  withStep(fields);
  const { code, tried } = await json();
  expect(code).toBe(4);
  expect(tried).toMatchObject(expected);
});

test('an exit code that the step calls good is good; a file without one good record is 3', async () => {
  withStep('okExit: [7], command: [sh, -c, "exit 7"]');
  expect((await json()).code).toBe(0);
  withStep(`command: [sh, -c, "echo bad > $0", "\${out.o}"], outputs: {o: {path: o, ${records}}}`);
  const { code, tried } = await json();
  expect(code).toBe(3);
  expect(tried.files).toMatchObject([{ poisoned: true, bad: [{ sample: 'bad' }] }]);
});

test('the environment is the worker’s: nothing of the caller but PATH, and secrets from where they are named', async () => {
  withStep('secrets: {API_KEY: key}, command: [env]');
  cli.environment = { SONAR_TOKEN: 'hidden' };
  const missing = await run();
  expect(missing).toMatchObject({ code: 2, err: expect.stringContaining('API_KEY') });
  cli.environment = { SONAR_TOKEN: 'hidden', API_KEY: 's3cret' };
  const { tried } = await json();
  const names = String(tried.stdout)
    .split('\n')
    .map((line) => line.split('=')[0])
    .filter((name) => name !== '' && name !== '_' && name !== 'PWD' && name !== 'SHLVL');
  expect(new Set(names)).toEqual(
    new Set(['API_KEY', 'HOME', 'LANG', 'PATH', 'SONAR_ATTEMPT_FOLDER', 'TMPDIR']),
  );
  expect(tried.stdout).toContain('API_KEY=s3cret');
});

test('--from stands in for upstream results: rows for items, files and folders for inputs', async () => {
  put(
    'rows.jsonl',
    '{"host": "x.example.com", "ip": "10.0.0.1"}\n{"host": "evil.org"}\n{"host": "x.example.com"}\n',
  );
  put('raw.bin', 'raw');
  withStep(
    'needs: {list: all}, foreach: {in: list.rows, pick: host}, target: "${item}", inputs: {names: {from: list.rows, pick: host, unique: true}, raw: {from: list.raw, as: directory}}, command: [sh, -c, "cat $1; ls $2", x, "${in.names}", "${in.raw}"]',
  );
  const { code, tried } = await json('--from', 'list.rows=rows.jsonl', '--from', 'list.raw=raw.bin');
  expect(code).toBe(0);
  expect(tried).toMatchObject({ item: 'x.example.com', stdout: 'x.example.com\nevil.org\n000000\n' });
  const without = await run();
  expect(without).toMatchObject({ code: 2, err: expect.stringContaining('--from list.rows=FILE') });
  const gone = await run('--from', 'list.rows=nothing');
  expect(gone).toMatchObject({ code: 2, err: expect.stringContaining('there is no') });
});

test('a file that is the target has only lines within the scope; without any there is nothing to do', async () => {
  withStep('inputs: {h: {from: inputs.hosts}}, target: "${in.h}", command: [cat, "${in.h}"]');
  const { tried } = await json('--input', 'hosts=a.example.com', '--input', 'hosts=evil.org');
  expect(tried).toMatchObject({
    stdout: 'a.example.com\n',
    refused: ['"evil.org" is outside the scope'],
  });
  const nothing = await json('--input', 'hosts=evil.org');
  expect(nothing).toMatchObject({ code: 0, tried: { outcome: 'no_work', argv: [] } });
});

test('rows as items, groups, batches, files of the definition, and a file as an item', async () => {
  put('list.txt', 'words');
  put('rows.jsonl', '{"host":"a","port":1}\n{"host":"b","port":9}\n{"host":"a","port":2}\n');
  withStep(
    'needs: {list: all}, foreach: {in: list.rows}, command: [echo, "${item.host}:${item.port}", "${file.list}"]',
  );
  const row = await json('--item', '{"host": "h", "port": 80}');
  expect(row.tried.stdout).toBe(`h:80 ${join(cli.folder, 'list.txt')}\n`);
  expect(await run('--item', 'h')).toMatchObject({ code: 2, err: expect.stringContaining('one as JSON') });
  withStep(
    'needs: {list: all}, foreach: {in: list.rows, group: host}, command: [echo, "${item.host}", "${join(item.port)}"]',
  );
  expect((await json('--from', 'list.rows=rows.jsonl')).tried.stdout).toBe('a 1,2\n');
  withStep('foreach: {in: inputs.hosts, batch: 5}, command: [cat, "${batch}"]');
  expect((await json()).tried.stdout).toBe('a.example.com\nb.example.com\n');
  expect((await json('--item', 'c', '--item', 'd')).tried.stdout).toBe('c\nd\n');
  withStep('needs: {list: all}, foreach: {in: list.raw}, command: [cat, "${item}"]');
  expect((await json('--from', 'list.raw=list.txt')).tried.stdout).toBe('words');
  expect((await json('--item', join(cli.folder, 'list.txt'))).tried.stdout).toBe('words');
});

test('an interrupt ends the command, and nothing of it stays', async () => {
  withStep('command: [sleep, "60"]');
  const trial = json();
  const interval = setInterval(() => {
    for (const interrupted of cli.interrupts) interrupted();
  }, 100);
  const { code, tried } = await trial.finally(() => clearInterval(interval));
  expect([code, tried.outcome]).toEqual([5, 'cancelled']);
  expect(trials()).toEqual([]);
});

test.each([
  ['no scope', ['--step', 'only'], 'say what may be scanned'],
  ['no step', [], 'say which step to try'],
  ['a step that is not there', ['--step', 'onyl'], 'there is no step "onyl"'],
  [
    'an item for a step without foreach',
    ['--step', 'only', '--allow', 'a.test', '--item', 'x'],
    'takes no item',
  ],
  ['a pair without a path', ['--step', 'only', '--allow', 'a.test', '--from', 'x'], 'name=path'],
])('%s is a fault of usage', async (_what, words, message) => {
  put(
    'd.yaml',
    'sonar: 1\nname: d\nsteps:\n  only: {tags: [t], command: ["true"]}\n  other: {tags: [t], command: ["true"]}\n',
  );
  expect(await cli.run('definition', 'try', 'd.yaml', ...words)).toMatchObject({
    code: 2,
    err: expect.stringContaining(message),
  });
});

test('faults of the text are told with their places', async () => {
  put('d.yaml', 'sonar: 1\nname: d\nstepz: {}\n');
  const { code, err } = await cli.run('definition', 'try', 'd.yaml');
  expect(code).toBe(1);
  expect(err).toContain('d.yaml:3:1');
});
