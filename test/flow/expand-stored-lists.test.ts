// A list that was stored as a file is read as a stream: what it holds becomes the same tasks as in a request, and
// going on after a stop costs no reading of what was dealt with.
import { checkTarget } from '#sonar/domain/scope.ts';
import { linesOf } from '#sonar/readers/line-stream.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { eachHost } from '../fixtures/definition-texts.ts';
import { faultyDatabase } from '../fixtures/faulty-database.ts';
import { grantedInput } from '../fixtures/granted-inputs.ts';
import { type Laboratory, openLaboratory } from '../fixtures/laboratory.ts';
import { overwriteObject, useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';
import { expand } from '../fixtures/scan-planning.ts';
import { storeFile } from '../fixtures/stored-file.ts';

jest.mock('#sonar/domain/scope.ts', () => {
  const scope = jest.requireActual<typeof import('#sonar/domain/scope.ts')>('#sonar/domain/scope.ts');
  return { ...scope, checkTarget: jest.fn(scope.checkTarget) };
});
const checks = jest.mocked(checkTarget);
let linesTaken = 0;
jest.mock('#sonar/readers/line-stream.ts', () => {
  const stream = jest.requireActual<typeof import('#sonar/readers/line-stream.ts')>(
    '#sonar/readers/line-stream.ts',
  );
  return { ...stream, linesOf: jest.fn(stream.linesOf) };
});
const lineStream = jest.mocked(linesOf);
const actualLinesOf = lineStream.getMockImplementation();

const clone = useClonedDatabase();
const objects = useObjectStore();

beforeEach(() => {
  linesTaken = 0;
  checks.mockClear();
  lineStream.mockImplementation(async function* counted(bytes) {
    for await (const line of actualLinesOf!(bytes)) {
      linesTaken += 1;
      yield line;
    }
  });
});

/** How much of which object is read, and in which statements how much is written. */
function watched(lab: Laboratory, onStatement: (name: string) => void = () => undefined) {
  const read = { times: 0, bytes: 0 };
  const times = new Map<string, number>();
  const database = faultyDatabase(lab.database, (name, time) => {
    times.set(name, time);
    onStatement(name);
    return false;
  });
  const counting: Laboratory['objects'] = {
    ...lab.objects,
    async read(key) {
      const chunks = await lab.objects.read(key);
      read.times += 1;
      return (async function* counted() {
        for await (const chunk of chunks) {
          read.bytes += chunk.byteLength;
          yield chunk;
        }
      })();
    },
  };
  return { lab: lab.with({ database, objects: counting }), read, times };
}

const hosts = (count: number): string =>
  Array.from({ length: count }, (_, n) => `host-${n}.example.com\n`).join('');

test('a stored list becomes the same tasks and refusals as the same list in a request', async () => {
  const lab = openLaboratory(clone, objects);
  const list = '\uFEFFa.example.com\r\n\r\n  elsewhere.org \t\n\nb.example.com\n-oX\nnot a host\n10.1.2.3';
  const sha256 = await storeFile(lab, list);
  const scope = { allow: ['example.com', '10.0.0.0/8'] };
  const outcomes = [];
  for (const input of [list.replace('\uFEFF', ''), { sha256 }]) {
    const scan = await lab.scan(eachHost, { inputs: { hosts: input }, scope });
    await lab.plan(scan);
    const [step] = await clone.database.rows(
      query`select refused, note from sonar.scan_step where scan_id = ${scan.scan_id}`,
    );
    outcomes.push([step, (await lab.tasks(scan)).map((task) => [task.item_ordinal, task.item])]);
  }
  expect(outcomes[1]).toEqual(outcomes[0]);
  expect(outcomes[1]).toEqual([
    { refused: 3, note: 'refused: "elsewhere.org" is outside the scope' },
    [
      [0, 'a.example.com'],
      [2, 'b.example.com'],
      [5, '10.1.2.3'],
    ],
  ]);
});

test('hostile lines of a stored list are refused one by one: no UTF-8, NUL, longer than the cap', async () => {
  const lab = openLaboratory(clone, objects);
  const bytes = Buffer.concat([
    Buffer.from('a.example.com\n'),
    Buffer.from([0x62, 0xff, 0x0a]),
    Buffer.from('c\0.example.com\n'),
    Buffer.alloc(1024 * 1024 + 10, 'd'),
    Buffer.from('\ne.example.com\n'),
  ]);
  const scan = await lab.scan(eachHost, { inputs: { hosts: { sha256: await storeFile(lab, bytes) } } });
  await lab.plan(scan);
  expect((await lab.tasks(scan)).map((task) => task.item)).toEqual(['a.example.com', 'e.example.com']);
  const [step] = await clone.database.rows(query`select refused, note from sonar.scan_step`);
  expect(step).toEqual({ refused: 3, note: 'refused: a line holds bytes that are no UTF-8 text' });
});

test('20,000 lines are read once, and written in ten bounded transactions', async () => {
  const list = hosts(20_000);
  const sha256 = await storeFile(openLaboratory(clone, objects), list);
  const { lab, read, times } = watched(openLaboratory(clone, objects));
  const scan = await lab.scan(eachHost, { inputs: { hosts: { sha256 } } });
  expect(await lab.plan(scan)).toBe(20_000);
  expect(read).toEqual({ times: 1, bytes: list.length });
  expect([linesTaken, checks.mock.calls.length]).toEqual([20_000, 20_000]);
  // The last one finds nothing more to write, and closes the expansion.
  expect([times.get('expansion.insert_tasks'), times.get('expansion.advance')]).toEqual([10, 11]);
});

test('however often it is stopped, each line is taken apart and judged once', async () => {
  const sha256 = await storeFile(openLaboratory(clone, objects), hosts(20_000));
  let stop = new AbortController();
  const { lab, read } = watched(openLaboratory(clone, objects), (name) => {
    if (name === 'expansion.insert_tasks') stop.abort();
  });
  const scan = await lab.scan(eachHost, { inputs: { hosts: { sha256 } } });
  const pass = await lab.planOnce(scan);
  for (let made = -1; made !== 0; ) {
    stop = new AbortController();
    ({ made } = await expand(lab, pass, stop.signal));
  }
  expect(read.times).toBe(11);
  // A go begins with the line that the one before has ended with.
  expect(linesTaken).toBeLessThanOrEqual(20_000 + 2 * read.times);
  expect(checks).toHaveBeenCalledTimes(20_000);
  const tasks = await lab.tasks(scan);
  expect(tasks.map((task) => task.item_ordinal)).toEqual(tasks.map((_, index) => index));
  expect(tasks.map((task) => task.item).join('\n')).toBe(hosts(20_000).trimEnd());
});

const eachNetwork = `
sonar: 1
name: each-network
inputs: {nets: {type: cidrs, required: true}}
steps:
  each:
    tags: [t]
    foreach: {in: inputs.nets, split: /28}
    target: \${item}
    command: [probe, "\${item}"]
`;

test('an expansion that is stopped within the pieces of one line goes on within them', async () => {
  let stop = new AbortController();
  const { lab } = watched(openLaboratory(clone, objects), (name) => {
    if (name === 'expansion.insert_tasks') stop.abort();
  });
  const sha256 = await storeFile(lab, '192.0.2.0/24\n10.0.0.0/16\n10.1.0.0/20\n');
  const scan = await lab.scan(eachNetwork, { inputs: { nets: { sha256 } } });
  const pass = await lab.planOnce(scan);
  for (let more = true; more; more = (await expand(lab, pass, stop.signal)).made > 0)
    stop = new AbortController();
  const tasks = await lab.tasks(scan);
  expect(tasks.map((task) => task.item_ordinal)).toEqual(Array.from({ length: 4_352 }, (_, n) => n + 16));
  expect(new Set(tasks.map((task) => task.item)).size).toBe(4_352);
  expect([tasks[0], tasks[4_096], tasks.at(-1)].map((task) => task?.item)).toEqual([
    '10.0.0.0/28',
    '10.1.0.0/28',
    '10.1.15.240/28',
  ]);
});

test('a stored list that is no longer what was stored fails the scan before any task is made of it', async () => {
  const lab = openLaboratory(clone, objects);
  const sha256 = await storeFile(lab, 'a.example.com\nb.example.com\n');
  const [file] = await clone.database.rows<{ object_key: string }>(
    query`select object_key from sonar.stored_file`,
  );
  const scan = await lab.scan(eachHost, { inputs: { hosts: { sha256 } } });
  await overwriteObject(file!.object_key, 'a.example.com\nx.example.com\n');
  await lab.plan(scan);
  expect(await lab.tasks(scan)).toEqual([]);
  expect(await lab.settle(scan)).toBe('Failed');
});

const oneFile = `
sonar: 1
name: one-file
inputs: {hosts: {type: hosts, required: true}}
steps:
  all:
    tags: [t]
    inputs: {hosts: {from: inputs.hosts, unique: true}}
    target: \${in.hosts}
    command: [probe, -l, "\${in.hosts}"]
`;

test("a step's file is made of a stored list line by line: unique, within the scope, the rest counted", async () => {
  const lab = openLaboratory(clone, objects);
  await lab.worker();
  const sha256 = await storeFile(lab, 'a.example.com\r\nelsewhere.org\n\na.example.com\nb.example.com');
  const scan = await lab.scan(oneFile, { inputs: { hosts: { sha256 } } });
  await lab.plan(scan);
  await lab.place();
  const [attempt] = await lab.published(scan);
  expect(await grantedInput(lab, attempt!, 'hosts')).toEqual({
    'hosts.txt': 'a.example.com\nb.example.com\n',
  });
  const [step] = await clone.database.rows(query`select refused, note from sonar.scan_step`);
  expect(step).toEqual({ refused: 1, note: 'refused: "elsewhere.org" is outside the scope' });
});

const named = eachHost.replace('command: [probe,', 'command: [probe, "${join(inputs.hosts)}",');
const oneText = `
sonar: 1
name: one-text
inputs: {hosts: {type: text}}
steps:
  only: {tags: [t], command: [probe]}
`;

test.each([
  [named, 'is a stored file, and step each names it in a template'],
  [oneText, 'the input `hosts` is of type text, which takes no stored file'],
])('a stored list is refused where it has no place', async (source, message) => {
  const lab = openLaboratory(clone, objects);
  const sha256 = await storeFile(lab, 'a.example.com\n');
  await expect(lab.scan(source, { inputs: { hosts: { sha256 } } })).rejects.toMatchObject({
    code: 'invalid',
    details: { problems: [{ path: 'inputs.hosts', message }] },
  });
  expect(await clone.database.rows(query`select 1 as one from sonar.scan`)).toEqual([]);
});
