// A step that begins anew has nothing of what it read before: its definition may have been edited meanwhile.
import { retryTasks } from '#sonar/flow/retry-tasks.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { edit } from '../fixtures/edited-scan.ts';
import { grantedInput } from '../fixtures/granted-inputs.ts';
import { openLaboratory } from '../fixtures/laboratory.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';
import { expand, prepare } from '../fixtures/scan-planning.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();

const survey = (use: string) => `
sonar: 1
name: begin-anew
inputs: {lines: {type: lines, default: [one, two]}, hosts: {type: lines, default: [a.example.com, evil.org]}, others: {type: lines, default: [b.example.com]}}
steps:
  list: {tags: [t], foreach: {in: inputs.lines}, command: [list, "\${item}"]}
  use: {tags: [t], needs: {list: all}, ${use}}
`;
const ofHosts = 'inputs: {x: {from: inputs.hosts, as: lines}}, command: [use, "${in.x}"]';
const ofOthers = 'inputs: {x: {from: inputs.others, as: lines}}, command: [use, "${in.x}"]';
const ofTargets = `${ofHosts}, target: "\${in.x}"`;

/** One `list` failed, and `use` was placed beside it; `list` is retried and `use` is edited before it begins again. */
async function edited(before: string, after: string) {
  const lab = openLaboratory(clone, objects);
  const worker = await lab.worker();
  const scan = await lab.scan(survey(before));
  await lab.plan(scan);
  await lab.place();
  const [one, two] = await lab.published(scan, 'list');
  await lab.run(one!, worker);
  await lab.run(two!, worker, {}, { outcome: 'failed', exitCode: 1 });
  await lab.plan(scan);
  await lab.place();
  const old = { attempts: await lab.published(scan, 'use'), pass: await lab.planOnce(scan) };
  await retryTasks(lab, scan.scan_id, null);
  await edit(lab, survey(after));
  await lab.plan(scan);
  await lab.place();
  const [again] = await lab.published(scan, 'list');
  await lab.run(again!, worker);
  return { lab, scan, old };
}

async function beganAnew(before: string, after: string) {
  const { lab, scan, old } = await edited(before, after);
  await lab.plan(scan);
  await lab.place();
  const [attempt] = await lab.published(scan, 'use');
  expect(attempt).toMatchObject({ definition_revision: 2 });
  return { lab, old, input: await grantedInput(lab, attempt!, 'x') };
}

test('a step that begins anew reads what its newer revision says, and its older attempts read nothing of that', async () => {
  const { lab, old, input } = await beganAnew(ofHosts, ofOthers);
  expect(input).toEqual({ 'x.txt': 'b.example.com\n' });
  expect(await grantedInput(lab, old.attempts[0]!, 'x')).toEqual({});
});

test('a step that begins anew with a target reads no line outside the scope', async () => {
  expect((await beganAnew(ofHosts, ofTargets)).input).toEqual({ 'x.txt': 'a.example.com\n' });
  const [step] = await clone.database.rows(query`select refused from sonar.scan_step where step = 'use'`);
  expect(step).toEqual({ refused: 1 });
});

test('a pass that knows the step as it was before makes no input for the step that began anew', async () => {
  const { lab, scan, old } = await edited(ofHosts, ofTargets);
  await lab.planOnce(scan);
  const pass = await lab.planOnce(scan);
  expect(pass.inputsDue).toBe(true);
  expect(await prepare(lab, { ...old.pass, inputsDue: true })).toMatchObject({ released: 0 });
  expect(await prepare(lab, pass)).toMatchObject({ released: 1 });
  await lab.place();
  const [attempt] = await lab.published(scan, 'use');
  expect(await grantedInput(lab, attempt!, 'x')).toEqual({ 'x.txt': 'a.example.com\n' });
});

test('a pass that knows the step as it was before makes no task of the step that began anew', async () => {
  const perItem = (list: string) => `foreach: {in: inputs.${list}}, command: [use, "\${item}"]`;
  const { lab, scan, old } = await edited(perItem('hosts'), perItem('others'));
  await lab.planOnce(scan);
  const pass = await lab.planOnce(scan);
  expect(await expand(lab, old.pass)).toMatchObject({ made: 0 });
  expect(await expand(lab, pass)).toMatchObject({ made: 1 });
  const live = await clone.database.rows(
    query`select item from sonar.task where step = 'use' and superseded_at is null`,
  );
  expect(live).toEqual([{ item: 'b.example.com' }]);
});
