import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { decode, openWorkbench } from './workbench.ts';

const stdoutOutput = [{ name: 'records', path: null, optional: false }];
const shell = (script: string) => ['/bin/sh', '-c', script];

test('a command runs in its own folder, its declared stdout goes to the object store, its message is acked', async () => {
  await using bench = await openWorkbench();
  await bench.worker().start();
  const message = bench.message(shell('echo "$HOME"; pwd; echo warned >&2'), { outputs: stdoutOutput });
  bench.puller.push(message);

  const result = await bench.resultOf(message);
  const root = join(bench.directory, 'bench', 'work', message.attemptId);
  expect(result).toMatchObject({ outcome: 'completed', exitCode: 0, failure: null });
  expect(result.stdout.head).toBeNull();
  expect(decode(result.stderr.head)).toBe('warned\n');
  expect(result.manifest).toEqual([
    { output: 'records', path: 'stdout', size: result.stdout.size, sha256: result.stdout.sha256 },
  ]);
  const object = bench.api.objects.get(`${message.attemptId}/${result.stdout.sha256}`);
  expect(object?.toString()).toBe(`${root}\n${root}\n`);

  await bench.watch.until('the ack', () => bench.puller.acked === 1);
  expect(bench.api.violations).toEqual([]);
});

test('inputs of several pages come as files and folders, and outputs may be folders', async () => {
  await using bench = await openWorkbench();
  await bench.worker().start();
  const message = bench.message(
    [
      ...shell(
        'cat "$1" > "$3/sub/one.txt" 2>/dev/null || { mkdir -p "$3/sub"; cat "$1" > "$3/sub/one.txt"; }; find "$2" -type f | sort | xargs cat > "$3/all.txt"',
      ).map((text) => [{ kind: 'text' as const, text }]),
      'script',
      [{ kind: 'in', name: 'hosts' }],
      [{ kind: 'in', name: 'parts' }],
      [{ kind: 'out', name: 'folder' }],
    ],
    {
      inputs: [
        { name: 'hosts', as: 'file' },
        { name: 'parts', as: 'directory' },
      ],
      outputs: [{ name: 'folder', path: 'a/b', optional: false }],
    },
  );
  bench.api.addInput(message.attemptId, 'hosts', { 'hosts.txt': 'one\n' });
  bench.api.addInput(message.attemptId, 'parts', {
    't1/x': '1',
    't2/x': '2',
    't3/x': '3',
    't4/y': '',
    't5/z': '5',
  });
  bench.puller.push(message);

  const result = await bench.resultOf(message);
  expect(result).toMatchObject({ outcome: 'completed', failure: null });
  const content = (path: string) => {
    const entry = result.manifest.find((candidate) => candidate.path === path);
    return bench.api.objects.get(`${message.attemptId}/${entry?.sha256}`)?.toString();
  };
  expect(content('sub/one.txt')).toBe('one\n');
  expect(content('all.txt')).toBe('1235');
  expect(bench.api.violations).toEqual([]);
});

test('stdin comes from an input file or from text, and the environment is minimal', async () => {
  await using bench = await openWorkbench();
  process.env.SONAR_TOKEN_CANARY = 'secret';
  await bench.worker().start();
  const fromFile = bench.message(['/bin/cat'], {
    stdin: [{ kind: 'in', name: 'hosts' }],
    inputs: [{ name: 'hosts', as: 'file' }],
  });
  bench.api.addInput(fromFile.attemptId, 'hosts', { 'h.txt': 'from file' });
  const fromText = bench.message(['/bin/cat'], { stdin: [{ kind: 'text', text: 'from text' }] });
  const environment = bench.message(['/usr/bin/env'], { env: { COLOR: [{ kind: 'text', text: 'red' }] } });
  for (const message of [fromFile, fromText, environment]) bench.puller.push(message);

  expect(decode((await bench.resultOf(fromFile)).stdout.head)).toBe('from file');
  expect(decode((await bench.resultOf(fromText)).stdout.head)).toBe('from text');
  const names = decode((await bench.resultOf(environment)).stdout.head)
    .trim()
    .split('\n')
    .map((line) => line.split('=')[0]);
  expect(names.toSorted((a = '', b = '') => (a < b ? -1 : 1))).toEqual([
    'COLOR',
    'HOME',
    'LANG',
    'PATH',
    'SONAR_ATTEMPT_FOLDER',
    'TMPDIR',
  ]);
  delete process.env.SONAR_TOKEN_CANARY;
});

test('nothing is left on disk after a disposition', async () => {
  await using bench = await openWorkbench();
  const worker = bench.worker();
  await worker.start();
  const message = bench.message(shell('echo x > left-behind; echo y'), { outputs: stdoutOutput });
  bench.puller.push(message);
  await bench.resultOf(message);
  await worker.stop();
  for (const folder of ['work', 'streams', 'results', 'groups', 'lock'])
    expect(readdirSync(join(bench.directory, 'bench', folder))).toEqual([]);
});

test('a failed command keeps its outputs, and its exit code says why it failed', async () => {
  await using bench = await openWorkbench();
  await bench.worker().start();
  const message = bench.message(shell('echo partial; exit 3'), { outputs: stdoutOutput });
  bench.puller.push(message);
  const result = await bench.resultOf(message);
  expect(result).toMatchObject({ outcome: 'failed', exitCode: 3, failure: { code: 'command_failed' } });
  expect(bench.api.objects.get(`${message.attemptId}/${result.stdout.sha256}`)?.toString()).toBe('partial\n');
  const accepted = bench.message(shell('exit 3'), { okExit: [0, 3] });
  bench.puller.push(accepted);
  expect(await bench.resultOf(accepted)).toMatchObject({ outcome: 'completed', exitCode: 3 });
});

test('a program that is not there is named with worker, image, tag and PATH', async () => {
  await using bench = await openWorkbench();
  await bench.worker({ image: 'tools:1' }).start();
  const message = bench.message(['no-such-scanner', '-v']);
  bench.puller.push(message);
  const result = await bench.resultOf(message);
  expect(result).toMatchObject({
    outcome: 'not_started',
    exitCode: null,
    failure: { code: 'command_not_found' },
  });
  for (const part of ['no-such-scanner', 'worker bench', 'tools:1', 'tag probe', process.env.PATH ?? ''])
    expect(result.failure?.message).toContain(part);
});

test('an argument of a megabyte is refused by the system and said so; many that make one pass', async () => {
  await using bench = await openWorkbench();
  await bench.worker().start();
  const large = bench.message(['/bin/true', 'x'.repeat(1024 * 1024)]);
  const many = bench.message(['/bin/echo', ...Array.from({ length: 10 }, () => 'y'.repeat(100_000))], {
    outputs: stdoutOutput,
  });
  bench.puller.push(large);
  bench.puller.push(many);
  const refused = await bench.resultOf(large);
  expect(refused).toMatchObject({ outcome: 'not_started', failure: { code: 'command_failed' } });
  expect(refused.failure?.message).toContain('128 KiB');
  expect(await bench.resultOf(many)).toMatchObject({
    outcome: 'completed',
    stdout: { size: 1_000_010, truncated: false },
  });
});

test('a hundred thousand lines are kept whole where they are declared and capped where they are not', async () => {
  await using bench = await openWorkbench();
  await bench.worker({ streamCapBytes: 1_000, headBytes: 100 }).start();
  const script = shell('seq 1 100000');
  const declared = bench.message(script, { outputs: stdoutOutput });
  const undeclared = bench.message(script);
  bench.puller.push(declared);
  bench.puller.push(undeclared);
  const whole = await bench.resultOf(declared);
  expect(whole.stdout).toMatchObject({ size: 588_895, truncated: false });
  const capped = await bench.resultOf(undeclared);
  expect(capped).toMatchObject({ outcome: 'completed', stdout: { size: 1_000, truncated: true } });
  expect(decode(capped.stdout.head)).toHaveLength(100);
});

test('a declared stdout past its cap is a failure, and what was kept is uploaded', async () => {
  await using bench = await openWorkbench();
  await bench.worker({ outputCapBytes: 10_000 }).start();
  const message = bench.message(shell('yes | head -c 1000000'), { outputs: stdoutOutput });
  bench.puller.push(message);
  const result = await bench.resultOf(message);
  expect(result).toMatchObject({
    outcome: 'failed',
    failure: { code: 'output_refused' },
    stdout: { size: 10_000, truncated: true },
  });
  expect(bench.api.objects.size).toBe(1);
});

test('an input that the api cannot give, or that leads out of its folder, fails the attempt without a start', async () => {
  await using bench = await openWorkbench();
  await bench.worker().start();
  const escaping = bench.message(['/bin/true'], { inputs: [{ name: 'parts', as: 'directory' }] });
  bench.api.addInput(escaping.attemptId, 'parts', { '../../../outside': 'x' });
  const missing = bench.message(['/bin/true'], { inputs: [{ name: 'hosts', as: 'file' }] });
  const corrupt = bench.message(['/bin/true'], { inputs: [{ name: 'hosts', as: 'file' }] });
  const stored = bench.api.addInput(corrupt.attemptId, 'hosts', { 'h.txt': 'right' });
  (stored.files[0] as { content: Buffer }).content = Buffer.from('wrong');
  for (const message of [escaping, missing, corrupt]) bench.puller.push(message);
  for (const message of [escaping, missing, corrupt])
    expect(await bench.resultOf(message)).toMatchObject({
      outcome: 'not_started',
      failure: { code: 'input_unavailable' },
    });
  expect(existsSync(join(bench.directory, 'outside'))).toBe(false);
});
