// Placement stays bounded where items, scopes or commands are large, and one scan's fault stops no other's work.
import { parseScope } from '#sonar/domain/scope.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { eachHost, eachLine } from '../fixtures/definition-texts.ts';
import { faultyDatabase } from '../fixtures/faulty-database.ts';
import { openLaboratory } from '../fixtures/laboratory.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';
import { scriptedPublisher } from '../fixtures/scripted-publisher.ts';

jest.mock('#sonar/domain/scope.ts', () => {
  const scope = jest.requireActual<typeof import('#sonar/domain/scope.ts')>('#sonar/domain/scope.ts');
  return { ...scope, parseScope: jest.fn(scope.parseScope) };
});
const parsings = jest.mocked(parseScope);

const clone = useClonedDatabase();
const objects = useObjectStore();

/** How often the placement asks for each statement. */
function counting() {
  const times = new Map<string, number>();
  const database = faultyDatabase(clone.database, (name, time) => {
    times.set(name, time);
    return false;
  });
  return { database, times: (name: string) => times.get(name) ?? 0 };
}

test('a large scope is read and parsed once for all tasks of a pass, and once in all', async () => {
  const { database, times } = counting();
  const lab = openLaboratory(clone, objects).with({ database });
  await lab.worker();
  const allow = Array.from({ length: 20_000 }, (_, n) => `10.0.${n >> 8}.${n & 255}`);
  const scan = await lab.scan(eachHost, { inputs: { hosts: allow.slice(0, 100) }, scope: { allow } });
  parsings.mockClear();
  await lab.plan(scan);
  await clone.database.execute(
    query`update sonar.task set not_before = now() + interval '1 hour' where item_ordinal >= 50`,
  );
  expect(await lab.place()).toMatchObject({ placed: [{ tasks: 50 }], refused: 0 });
  await clone.database.execute(query`update sonar.task set not_before = null`);
  expect(await lab.place()).toMatchObject({ placed: [{ tasks: 50 }], refused: 0 });
  expect(parsings).toHaveBeenCalledTimes(1);
  expect(times('scan.scope')).toBe(1);
});

describe("a fault of one scan's dispatch", () => {
  const twoScans = async () => {
    const lab = openLaboratory(clone, objects);
    await lab.worker();
    const [first, second] = [
      await lab.scan(eachLine, { inputs: { lines: ['a', 'b'] } }),
      await lab.scan(eachLine, { inputs: { lines: ['c'] } }),
    ];
    await lab.plan(first);
    await lab.plan(second);
    return { lab, first, second };
  };

  test('leaves the other scans their part of the same pass, and its own tasks to the next', async () => {
    const { lab, first, second } = await twoScans();
    const faulty = faultyDatabase(
      clone.database,
      (name, time) => name === 'placement.dispatch' && time === 1,
    );
    const placed = { tag: 't', step: 'each' };
    expect((await lab.with({ database: faulty }).place())?.placed).toEqual([
      { ...placed, scanId: second.scan_id, tasks: 1 },
    ]);
    expect((await lab.tasks(first)).map((task) => task.status)).toEqual(['Pending', 'Pending']);
    expect((await lab.place())?.placed).toEqual([{ ...placed, scanId: first.scan_id, tasks: 2 }]);
  });

  test('is undone whole: no item of it is refused, nor counted as refused', async () => {
    const lab = openLaboratory(clone, objects);
    await lab.worker();
    const scan = await lab.scan(eachLine, { inputs: { lines: ['a', '--option'] } });
    await lab.plan(scan);
    const faulty = faultyDatabase(clone.database, (name) => name === 'placement.dispatch');
    expect(await lab.with({ database: faulty }).place()).toMatchObject({ placed: [], refused: 0 });
    expect((await lab.tasks(scan)).map((task) => task.status)).toEqual(['Pending', 'Pending']);
    expect(await lab.place()).toMatchObject({ placed: [{ tasks: 1 }], refused: 1 });
  });

  test('is undone alone also where PostgreSQL refused a statement of it', async () => {
    const { lab, first, second } = await twoScans();
    await clone.database.script(
      `alter table sonar.outbox_events add constraint refuse check (payload->>'scanId' <> '${first.scan_id}')`,
    );
    try {
      expect((await lab.place())?.placed).toMatchObject([{ scanId: second.scan_id, tasks: 1 }]);
    } finally {
      await clone.database.script('alter table sonar.outbox_events drop constraint refuse');
    }
    expect((await lab.tasks(first)).map((task) => task.status)).toEqual(['Pending', 'Pending']);
    expect(await lab.published(second)).toHaveLength(1);
    expect((await lab.place())?.placed).toMatchObject([{ scanId: first.scan_id, tasks: 2 }]);
  });
});

/** Each item forty times over, in arguments that the kernel still takes. */
const repeating = eachLine.replace(
  '[probe, "${item}"]',
  `[probe, ${Array.from({ length: 20 }, () => '"${item}${item}"').join(', ')}]`,
);
const mebibyte = 1024 * 1024;
const line = (bytes: number, index: number) => String(index).padEnd(bytes, 'x');

test('a command that is larger than a message may be fails alone; its neighbours are placed', async () => {
  const lab = openLaboratory(clone, objects);
  await lab.worker();
  const scan = await lab.scan(repeating, { inputs: { lines: [line(9, 1), line(60_000, 2), line(9, 3)] } });
  await lab.plan(scan);
  expect(await lab.place()).toMatchObject({ placed: [{ tasks: 2 }], refused: 1 });
  expect((await lab.tasks(scan)).map((task) => [task.status, task.failure_code])).toEqual([
    ['Published', null],
    ['Failed', 'item_refused'],
    ['Published', null],
  ]);
  expect((await lab.tasks(scan))[1]?.failure_message).toMatch(
    /^the command is \d{7} bytes long, more than 2097152/,
  );
});

test('many large commands are written in slices and published in rounds', async () => {
  const { database, times } = counting();
  const lab = openLaboratory(clone, objects).with({ database });
  await lab.worker();
  const scan = await lab.scan(repeating, {
    inputs: { lines: Array.from({ length: 30 }, (_, index) => line(26_300, index)) },
  });
  await lab.plan(scan);
  expect(await lab.place()).toMatchObject({ placed: [{ tasks: 30 }], refused: 0 });
  // Three of them are 3 MiB, and a fourth would take a statement past 4.
  expect(times('placement.dispatch')).toBe(10);
  const [event] = await clone.database.rows<{ least: number; most: number }>(
    query`select min(bytes) as least, max(bytes) as most from sonar.outbox_delivery_queue`,
  );
  expect(event?.least).toBeGreaterThan(mebibyte);
  const rounds: number[] = [];
  const publisher = scriptedPublisher();
  for (let sent = 0; (await lab.publish(publisher)) > 0; sent = publisher.sent.length) {
    const bodies = publisher.sent.slice(sent).map(({ body }) => body.length);
    rounds.push(bodies.length);
    // The one that crosses the bound is the last, so that any single one goes out.
    expect(bodies.slice(0, -1).reduce((sum, bytes) => sum + bytes, 0)).toBeLessThanOrEqual(16 * mebibyte);
  }
  expect(rounds).toEqual([16, 14]);
  expect(new Set(publisher.sent.map(({ key }) => key)).size).toBe(30);
});
