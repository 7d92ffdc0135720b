// Inputs and outputs when the object store does what it does on bad days.
import { problem } from './scripted-api.ts';
import { openWorkbench } from './workbench.ts';

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
