// Inputs and outputs when the object store does what it does on bad days.
import { problem } from './scripted-api.ts';
import { decode, openWorkbench } from './workbench.ts';

const shell = (script: string) => ['/bin/sh', '-c', script];
const stdoutOutput = [{ name: 'records', path: null, optional: false }];

test('uploads ask again when a URL has expired, and take 412 for done', async () => {
  await using bench = await openWorkbench();
  await bench.worker().start();
  bench.api.store = (_, count) => {
    if (count === 1) return { status: 403, body: 'expired' };
    if (count === 2) return { status: 500, body: 'broken' };
    return count === 3 ? { status: 412, body: 'there' } : undefined;
  };
  const message = bench.message(shell('echo out'), { outputs: stdoutOutput });
  bench.puller.push(message);
  const result = await bench.resultOf(message);
  expect(result.manifest).toHaveLength(1);
  expect(bench.api.of('uploads')).toHaveLength(3);
});

test('downloads ask again when a URL has expired, and go on after a broken connection', async () => {
  await using bench = await openWorkbench();
  await bench.worker().start();
  const message = bench.message(['/bin/cat'], {
    inputs: [{ name: 'hosts', as: 'file' }],
    stdin: [{ kind: 'in', name: 'hosts' }],
  });
  bench.api.addInput(message.attemptId, 'hosts', { 'h.txt': 'x'.repeat(100_000) });
  bench.api.store = (_, count) =>
    count === 1 ? { status: 403, body: 'expired' } : count === 2 ? 'cut' : undefined;
  bench.puller.push(message);
  expect(await bench.resultOf(message)).toMatchObject({ outcome: 'completed', stdout: { size: 100_000 } });
  expect(bench.api.of('inputs')).toHaveLength(2);
});

test('an object store that stays away releases the attempt instead of failing it', async () => {
  await using bench = await openWorkbench();
  await bench.worker({ transferForMs: 100 }).start();
  const message = bench.message(['/bin/true'], { inputs: [{ name: 'hosts', as: 'file' }] });
  bench.api.addInput(message.attemptId, 'hosts', { 'h.txt': 'x' });
  bench.api.store = () => 'cut';
  bench.puller.push(message);
  await bench.watch.until('the ack', () => bench.puller.acked === 1);
  expect(bench.api.of('release')).toMatchObject([{ reason: 'interrupted' }]);
  expect(bench.api.of('result')).toEqual([]);
});

test('outputs are uploaded in requests of at most a hundred, equal ones once', async () => {
  await using bench = await openWorkbench();
  await bench.worker().start();
  const message = bench.message(
    [
      ...shell('mkdir "$1"; for n in $(seq 1 250); do echo $((n % 150)) > "$1/$n"; done'),
      'script',
      [{ kind: 'out', name: 'parts' }],
    ],
    {
      outputs: [{ name: 'parts', path: 'parts', optional: false }],
    },
  );
  bench.puller.push(message);
  const result = await bench.resultOf(message);
  expect(result.manifest).toHaveLength(250);
  expect(bench.api.of('uploads').map(({ files }) => files.length)).toEqual([100, 50]);
  expect(bench.api.objects.size).toBe(150);
});

test('uploads that the api will not take make the attempt fail, and say why', async () => {
  await using bench = await openWorkbench();
  await bench.worker().start();
  bench.api.script.uploads = () => problem(413, 'too_large');
  const message = bench.message(shell('echo out'), { outputs: stdoutOutput });
  bench.puller.push(message);
  const result = await bench.resultOf(message);
  expect(result).toMatchObject({ outcome: 'failed', manifest: [], failure: { code: 'output_refused' } });
  expect(result.failure?.message).toContain('scripted too_large');
});

const digest = 'd'.repeat(64);
const templates = { 'a.yaml': 'A', 'deep/b.yaml': 'B', 'deep/c.yaml': 'C' };
const reading = [
  '/bin/sh',
  '-c',
  'cd "$1" && cat a.yaml deep/*; touch deep/new 2>/dev/null && echo written',
  'script',
];

test('files with a digest are fetched once, by whichever attempt comes first, and shared by all', async () => {
  await using bench = await openWorkbench();
  await bench.worker({ slots: 3 }).start();
  const messages = Array.from({ length: 6 }, () =>
    bench.message([...reading, [{ kind: 'in', name: '_file-templates' }]], {
      inputs: [{ name: '_file-templates', as: 'directory', digest }],
    }),
  );
  for (const message of messages) {
    bench.api.addInput(message.attemptId, '_file-templates', templates);
    bench.puller.push(message);
  }
  const results = await Promise.all(messages.map((message) => bench.resultOf(message)));
  // As root nothing is read-only; what matters is what was read.
  for (const result of results) expect(decode(result.stdout.head)).toMatch(/^ABC/);
  expect(bench.api.storeRequests.filter((request) => request.startsWith('GET'))).toHaveLength(3);
  expect(new Set(bench.api.of('inputs').map(({ attemptId }) => attemptId)).size).toBe(1);
});

test('one file with a digest is the file itself', async () => {
  await using bench = await openWorkbench();
  await bench.worker().start();
  const message = bench.message(['/bin/cat', [{ kind: 'in', name: '_file-words' }]], {
    inputs: [{ name: '_file-words', as: 'file', digest }],
  });
  bench.api.addInput(message.attemptId, '_file-words', { 'words.txt': 'w' });
  bench.puller.push(message);
  expect(decode((await bench.resultOf(message)).stdout.head)).toBe('w');
});

test('shared files that one attempt could not fetch are fetched by the next', async () => {
  await using bench = await openWorkbench();
  await bench.worker().start();
  const [first, second] = [1, 2].map(() =>
    bench.message([...reading, [{ kind: 'in', name: '_file-templates' }]], {
      inputs: [{ name: '_file-templates', as: 'directory', digest }],
    }),
  ) as [ReturnType<typeof bench.message>, ReturnType<typeof bench.message>];
  bench.puller.push(first);
  expect(await bench.resultOf(first)).toMatchObject({
    outcome: 'not_started',
    failure: { code: 'input_unavailable' },
  });
  bench.api.addInput(second.attemptId, '_file-templates', templates);
  bench.puller.push(second);
  expect(decode((await bench.resultOf(second)).stdout.head)).toMatch(/^ABC/);
});

test('secrets of the answer to started are variables of the command, and are on no disk and in no result', async () => {
  await using bench = await openWorkbench();
  await bench.worker().start();
  bench.api.script.started = () => ({
    status: 200,
    body: { disposition: 'run', secrets: { API_KEY: 'hunter2' }, serverTime: new Date().toISOString() },
  });
  const script = 'test "$API_KEY" = hunter2 && grep -rl hunter2 "$1" || echo nowhere';
  const message = bench.message([...shell(script), 'script', bench.directory]);
  bench.puller.push(message);
  const result = await bench.resultOf(message);
  expect(decode(result.stdout.head)).toBe('nowhere\n');
  expect(JSON.stringify(result)).not.toContain('hunter2');
});
