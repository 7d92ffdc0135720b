// The files of an input come in pages, in one order, each with a URL that gives its bytes.
import type { InputFile, InputsAnswer } from '#sonar/contracts/worker-api.ts';
import { grantInputs } from '#sonar/flow/grant-files.ts';
import type { AttemptRow } from '#sonar/stores/attempts.ts';
import { findRevision } from '#sonar/stores/definitions.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { fanOutAndIn } from '../fixtures/definition-texts.ts';
import { identity, openLaboratory } from '../fixtures/laboratory.ts';
import type { LiveWorker } from '../fixtures/live-worker.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const parts = () => ({ database: clone.database, objects });

async function page(
  attempt: AttemptRow,
  worker: LiveWorker,
  input: string,
  after: string | null,
): Promise<InputsAnswer> {
  const revision = await findRevision(clone.database, 'default', attempt.definition_name, 1);
  const step = revision?.compiled.steps.find(({ name }) => name === attempt.step);
  if (!step) throw new Error(`no step ${attempt.step}`);
  return grantInputs(parts(), attempt, step, { ...identity(attempt, worker), input, after });
}

async function allPages(attempt: AttemptRow, worker: LiveWorker, input: string) {
  const sizes: number[] = [];
  const files: InputFile[] = [];
  for (let after: string | null = null; ; ) {
    const answer: InputsAnswer = await page(attempt, worker, input, after);
    sizes.push(answer.files.length);
    files.push(...answer.files);
    if (answer.next === null) return { sizes, files };
    after = answer.next;
  }
}

/** The attempt of the report over as many children as there are lists of files. */
async function reportOver(children: Record<string, string>[]) {
  const lab = openLaboratory(clone, objects);
  const worker = await lab.worker();
  const scan = await lab.scan(fanOutAndIn, { inputs: { lines: children.map((_, index) => `l${index}`) } });
  await lab.plan(scan);
  await lab.place();
  for (const attempt of await lab.published(scan))
    await lab.run(attempt, worker, { found: { 'found.txt': attempt.task_id } });
  await lab.plan(scan);
  await lab.place();
  const middle = await lab.published(scan, 'child');
  for (const [index, attempt] of middle.entries())
    await lab.run(attempt, worker, { seen: children[index] ?? {} });
  await lab.plan(scan);
  await lab.place();
  const [report] = await lab.published(scan, 'report');
  return { lab, worker, scan, middle, report: report as AttemptRow };
}

const textOf = async (file: InputFile | undefined) => (await fetch(file?.url ?? '')).text();

test("a Single child gets its own parent's file", async () => {
  const { worker, middle } = await reportOver([{ a: '1' }, { b: '2' }]);
  const [row] = await clone.database.rows<{ parent: string }>(
    query`select parent_task_id as parent from sonar.task where task_id = ${middle[0]?.task_id}`,
  );
  const { files } = await allPages(middle[0] as AttemptRow, worker, 'found');
  expect(files.map(({ path }) => path)).toEqual(['found.txt']);
  expect(await textOf(files[0])).toBe(row?.parent);
});

test('an All step gets a folder for each upstream task, in the pinned order', async () => {
  const { worker, scan, report } = await reportOver([
    { 'seen.txt': 'first' },
    {},
    { 'seen.txt': 'third', 'deep/er.txt': 'x' },
  ]);
  const { files } = await allPages(report, worker, 'seen');
  const pinned = await clone.database.rows<{ ordinal: number; path: string }>(query`
    select p.ordinal, f.path from sonar.pinned_source p join sonar.output_file f using (attempt_id)
    where p.scan_id = ${scan.scan_id} and f.output = 'seen' order by p.ordinal, f.path`);
  expect(files.map(({ path }) => path)).toEqual(
    pinned.map(({ ordinal, path }) => `${String(ordinal).padStart(6, '0')}/${path}`),
  );
  expect(new Set(files.map(({ path }) => path.slice(0, 6))).size).toBe(2);
  expect((await Promise.all(files.map(textOf))).toSorted()).toEqual(['first', 'third', 'x']);
});

test('many files come in pages without one lost or twice, also where a page ends inside of a folder', async () => {
  const many = Object.fromEntries(
    Array.from({ length: 205 }, (_, index) => [`f-${String(index).padStart(4, '0')}`, '']),
  );
  const { worker, report, middle } = await reportOver([{ only: 'one' }, { only: 'two' }]);
  for (const attempt of middle)
    await clone.database.execute(query`
      insert into sonar.output_file (attempt_id, workspace_id, task_id, output, path, object_key, size, sha256, partial)
      select attempt_id, workspace_id, task_id, output, name, object_key, size, sha256, false
      from sonar.output_file, unnest(${Object.keys(many)}::text[]) as name
      where attempt_id = ${attempt.attempt_id} and output = 'seen'`);
  const { sizes, files } = await allPages(report, worker, 'seen');
  expect(sizes).toEqual([200, 200, 12]);
  expect(new Set(files.map(({ path }) => path)).size).toBe(412);
});

test('an input that the step does not have, and a cursor that is not ours, are refused', async () => {
  const { worker, report } = await reportOver([{ a: '1' }]);
  await expect(page(report, worker, 'other', null)).rejects.toMatchObject({ code: 'invalid' });
  for (const after of [
    'nonsense',
    Buffer.from('[1]').toString('base64url'),
    Buffer.from('["a","b"]').toString('base64url'),
  ])
    await expect(page(report, worker, 'seen', after)).rejects.toMatchObject({ code: 'invalid' });
});
