// A definition is edited while scans of it run: the command and a new step show in the one that follows it, and not
// in the one that is pinned.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SonarProcesses, until } from './sonar-processes.ts';

let sonar: SonarProcesses;
beforeAll(async () => {
  sonar = await SonarProcesses.prepare();
  await sonar.serve('all');
});
afterAll(() => sonar?.stop());

/** One line a task, one after the other, each until the file `gate` is there. */
const definition = (tag: string, gate: string, said: string, more = '') => `
sonar: 1
name: edited
inputs: {lines: {type: lines, default: [a, b, c]}}
scope: {allow: [127.0.0.1]}
steps:
  each:
    tags: [${tag}]
    foreach: {in: inputs.lines}
    maxConcurrent: 1
    command: [sh, -c, "while ! [ -e ${gate} ]; do sleep 0.1; done; echo \\"$0 $1\\"", ${said}, "\${item}"]
    outputs: {said: {stdout: true}}
${more}`;

test('a running scan shows an edited command and a new step; a pinned one does neither', async () => {
  const gate = join(sonar.directory, 'gate');
  await sonar.worker('first', { slots: 4 });
  await sonar.client.applyDefinition(definition(sonar.tag, gate, 'before'));
  const scope = { allow: ['127.0.0.1'] };
  const following = await sonar.client.startScan({ definition: 'edited', scope });
  const pinned = await sonar.client.startScan({ definition: 'edited', scope, pin: true });
  for (const { id } of [following, pinned])
    await until('its first command runs', async () =>
      (await sonar.client.scan(id)).steps.some((step) => step.counts.running === 1),
    );
  const added = `  after:
    tags: [${sonar.tag}]
    needs: {each: single}
    command: [echo, new]
`;
  const file = join(sonar.directory, 'edited.yaml');
  writeFileSync(file, definition(sonar.tag, gate, 'after', added));
  expect((await sonar.cli(['definition', 'apply', file])).code).toBe(0);
  await until(
    'the scan has taken the edit',
    async () => (await sonar.client.scan(following.id)).revision === 2,
  );
  writeFileSync(gate, '');
  const [followed, kept] = [await sonar.ended(following.id), await sonar.ended(pinned.id)];
  expect(followed).toMatchObject({ status: 'Completed', revision: 2 });
  expect(followed.steps.map(({ step, counts }) => [step, counts.completed])).toEqual([
    ['each', 3],
    ['after', 3],
  ]);
  expect(kept).toMatchObject({ status: 'Completed', revision: 1, pinned: true });
  expect(kept.steps.map(({ step, counts }) => [step, counts.completed])).toEqual([['each', 3]]);
  // What ran when the edit came kept its command; the two after it have the new one.
  const commands = async (scan: string) =>
    (
      await sonar.clone.database.rows<{ said: string }>({
        name: 'test.said',
        text: `select e.payload->'command'->3->0->>'text' as said from sonar.outbox_events e
               join sonar.attempt a on a.attempt_id = e.attempt_id where a.scan_id = $1 and a.step = 'each' order by a.created_at`,
        values: [scan],
      })
    ).map((row) => row.said);
  expect(await commands(following.id)).toEqual(['before', 'after', 'after']);
  expect(await commands(pinned.id)).toEqual(['before', 'before', 'before']);
});
