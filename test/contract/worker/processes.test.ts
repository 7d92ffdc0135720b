// Real processes: nothing of a command outlives what should have ended it.
import { type ChildProcess, fork } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { processStart } from '#sonar/worker/process-trace.ts';
import { numberIn, poll } from './watch.ts';
import { openWorkbench, type Workbench } from './workbench.ts';

const shell = (script: string) => ['/bin/sh', '-c', script];
const gone = (pid: number) => poll(`process ${pid} is gone`, () => processStart(pid) === null);

/** A script that starts a tree of three, all deaf to SIGTERM unless said otherwise, and writes their ids to `pids`. */
const tree = (pids: string, deaf = true) =>
  shell(
    `${deaf ? "trap '' TERM;" : ''} sh -c 'sleep 300 & echo $! >> ${pids}; echo $$ >> ${pids}; wait; sleep 300' & echo $$ >> ${pids}; wait; sleep 300`,
  );

function pidsIn(path: string): number[] {
  try {
    return readFileSync(path, 'utf8').trim().split('\n').map(Number);
  } catch {
    return [];
  }
}

async function treeOf(path: string): Promise<number[]> {
  await poll('the tree of three runs', () => pidsIn(path).length === 3);
  return pidsIn(path);
}

const running = (bench: Workbench, attemptId: string) =>
  bench.watch.until('a pulse that lists the attempt', () =>
    bench.api.of('pulse').some(({ attempts }) => attempts.includes(attemptId)),
  );

test('a timeout ends the whole tree, though it is deaf to SIGTERM', async () => {
  await using bench = await openWorkbench();
  await bench.worker({ termGraceMs: 100 }).start();
  const pids = join(bench.directory, 'pids');
  const message = bench.message(tree(pids), { timeoutMs: 1_500 });
  bench.puller.push(message);
  const tree3 = await treeOf(pids);
  const result = await bench.resultOf(message);
  expect(result).toMatchObject({
    outcome: 'timed_out',
    exitCode: null,
    signal: 'SIGKILL',
    failure: { code: 'command_timed_out' },
  });
  await Promise.all(tree3.map(gone));
});

test('what was written before a timeout is kept', async () => {
  await using bench = await openWorkbench();
  await bench.worker({ termGraceMs: 100 }).start();
  const message = bench.message(shell('echo early; exec sleep 300'), {
    timeoutMs: 1_500,
    outputs: [{ name: 'records', path: null, optional: false }],
  });
  bench.puller.push(message);
  const result = await bench.resultOf(message);
  expect(result).toMatchObject({ outcome: 'timed_out', signal: 'SIGTERM' });
  expect(bench.api.objects.get(`${message.attemptId}/${result.stdout.sha256}`)?.toString()).toBe('early\n');
});

test('a cancel, repeated by every pulse, ends the tree after one grace and still sends a result', async () => {
  await using bench = await openWorkbench();
  bench.api.pulseEveryMs = 20;
  await bench.worker({ termGraceMs: 500 }).start();
  const pids = join(bench.directory, 'pids');
  const message = bench.message(tree(pids));
  bench.puller.push(message);
  const tree3 = await treeOf(pids);
  bench.api.pulse.cancel.push(message.attemptId);
  expect(await bench.resultOf(message)).toMatchObject({ outcome: 'cancelled', manifest: [] });
  await Promise.all(tree3.map(gone));
  await bench.watch.until('the ack', () => bench.puller.acked === 1);
});

test('what a superseded attempt runs is ended and nothing is sent', async () => {
  await using bench = await openWorkbench();
  await bench.worker({ termGraceMs: 100 }).start();
  const pids = join(bench.directory, 'pids');
  const message = bench.message(tree(pids));
  bench.puller.push(message);
  const tree3 = await treeOf(pids);
  bench.api.pulse.superseded.push(message.attemptId);
  await bench.watch.until('the ack', () => bench.puller.acked === 1);
  await Promise.all(tree3.map(gone));
  expect(bench.api.of('result')).toEqual([]);
  expect(bench.api.of('release')).toEqual([]);
});

test('what a command left running is killed when it exits, and does not hold up its result', async () => {
  await using bench = await openWorkbench();
  await bench.worker().start();
  const pids = join(bench.directory, 'pids');
  // The second one has left the group and holds stdout open.
  const message = bench.message(
    shell(
      `sleep 300 & echo $! > ${pids}; setsid sh -c 'echo $$ >> ${pids}; exec sleep 300' & until [ "$(wc -l < ${pids})" = 2 ]; do :; done; echo done`,
    ),
  );
  bench.puller.push(message);
  expect(await bench.resultOf(message)).toMatchObject({ outcome: 'completed', exitCode: 0 });
  await Promise.all(pidsIn(pids).map(gone));
});

test('a daemon that hides from the worker costs the command its declared stdout, not the slot', async () => {
  await using bench = await openWorkbench();
  await bench.worker().start();
  const pids = join(bench.directory, 'pids');
  const script = `setsid env -i /bin/sh -c 'echo $$ >> ${pids}; exec /bin/sleep 300' & until [ -s ${pids} ]; do :; done; echo done`;
  const message = bench.message(shell(script), {
    outputs: [{ name: 'records', path: null, optional: false }],
  });
  bench.puller.push(message);
  const result = await bench.resultOf(message);
  for (const pid of pidsIn(pids)) process.kill(pid, 'SIGKILL');
  expect(result).toMatchObject({
    outcome: 'failed',
    exitCode: 0,
    stdout: { size: 5, truncated: true },
    failure: { code: 'output_refused' },
  });
  expect(result.failure?.message).toContain('held open');
});

function startLoneWorker(bench: Workbench, message: object, name: string): ChildProcess {
  const path = fileURLToPath(new URL('./lone-worker-process.ts', import.meta.url));
  const config = JSON.stringify(bench.config({ name }));
  return fork(path, [config, JSON.stringify(message)], {
    execArgv: ['--disable-warning=ExperimentalWarning'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
}

const exited = (child: ChildProcess) => new Promise((resolve) => child.once('exit', resolve));

test('a worker killed by SIGKILL takes the process groups of its commands with it', async () => {
  await using bench = await openWorkbench();
  const pids = join(bench.directory, 'pids');
  const child = startLoneWorker(bench, bench.message(tree(pids)), 'lone');
  const tree3 = await treeOf(pids);
  child.kill('SIGKILL');
  await exited(child);
  await Promise.all(tree3.map(gone));
  expect(tree3.map(processStart)).toEqual([null, null, null]);
});

test('when worker and helper are both killed, the next start ends what they left', async () => {
  await using bench = await openWorkbench();
  const pids = join(bench.directory, 'pids');
  const child = startLoneWorker(bench, bench.message(tree(pids)), 'lone');
  const tree3 = await treeOf(pids);
  const helper = helperOf(tree3);
  process.kill(helper, 'SIGSTOP');
  child.kill('SIGKILL');
  await exited(child);
  process.kill(helper, 'SIGKILL');
  expect(tree3.map((pid) => processStart(pid) !== null)).toEqual([true, true, true]);
  await bench.worker({ name: 'lone' }).start();
  await Promise.all(tree3.map(gone));
});

/** The helper: the parent of the one of the tree whose parent is not in the tree. */
function helperOf(tree3: number[]): number {
  for (const pid of tree3) {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
    if (!tree3.includes(parent)) return parent;
  }
  throw new Error('no helper');
}

test('a killed helper ends its commands, they are released, and the next command has a new helper', async () => {
  await using bench = await openWorkbench();
  await bench.worker({ termGraceMs: 100 }).start();
  const pids = join(bench.directory, 'pids');
  const message = bench.message(tree(pids));
  bench.puller.push(message);
  const tree3 = await treeOf(pids);
  await running(bench, message.attemptId);
  process.kill(helperOf(tree3), 'SIGKILL');
  await bench.watch.until('the release', () => bench.api.of('release').length === 1);
  expect(bench.api.of('release')).toMatchObject([{ attemptId: message.attemptId, reason: 'interrupted' }]);
  await Promise.all(tree3.map(gone));
  const next = bench.message(['/bin/true']);
  bench.puller.push(next);
  expect(await bench.resultOf(next)).toMatchObject({ outcome: 'completed' });
  expect(bench.api.of('result')).toHaveLength(1);
});

test('a helper killed before it recorded the group of a command ends that too', async () => {
  await using bench = await openWorkbench();
  await bench.worker({ termGraceMs: 100 }).start();
  const pids = join(bench.directory, 'pids');
  bench.puller.push(bench.message(tree(pids)));
  const tree3 = await treeOf(pids);
  const helper = helperOf(tree3);
  process.kill(helper, 'SIGSTOP');
  // Between the start and the record there is no file; what the command does meanwhile is up to the scheduler.
  const groups = join(bench.directory, 'bench', 'groups');
  for (const name of readdirSync(groups)) rmSync(join(groups, name));
  process.kill(helper, 'SIGKILL');
  await bench.watch.until('the release', () => bench.api.of('release').length === 1);
  await Promise.all(tree3.map(gone));
  expect(bench.api.of('release')).toMatchObject([{ reason: 'interrupted' }]);
});

test('a killed helper ends its commands though their records are gone, and its worker lives', async () => {
  await using bench = await openWorkbench();
  await bench.worker({ termGraceMs: 100 }).start();
  const pids = join(bench.directory, 'pids');
  bench.puller.push(bench.message(tree(pids)));
  const tree3 = await treeOf(pids);
  rmSync(join(bench.directory, 'bench', 'groups'), { recursive: true });
  process.kill(helperOf(tree3), 'SIGKILL');
  await bench.watch.until('the release', () => bench.api.of('release').length === 1);
  await Promise.all(tree3.map(gone));
  const next = bench.message(['/bin/true']);
  bench.puller.push(next);
  expect(await bench.resultOf(next)).toMatchObject({ outcome: 'completed' });
});

test('what stands among the records of groups and is none keeps no worker from starting', async () => {
  await using bench = await openWorkbench();
  mkdirSync(join(bench.directory, 'bench', 'groups', '4000000', 'deep'), { recursive: true });
  await bench.worker().start();
  expect(readdirSync(join(bench.directory, 'bench', 'groups'))).toEqual([]);
});

/** A daemon with a session of its own that holds no pipe of its command. */
const daemon = (pids: string, then = '') =>
  `setsid sh -c 'echo $$ > ${pids}; exec sleep 300' >/dev/null 2>&1 & until [ -s ${pids} ]; do :; done; ${then}`;

test('a daemon that holds no pipe ends soon after its command, and none of a command that runs', async () => {
  await using bench = await openWorkbench();
  await bench.worker({ slots: 2 }).start();
  const [own, stray, end] = ['own', 'stray', 'end'].map((name) => join(bench.directory, name)) as [
    string,
    string,
    string,
  ];
  const long = bench.message(shell(daemon(own, `until [ -e ${end} ]; do sleep 0.05; done`)));
  bench.puller.push(long);
  await poll('the long command has its daemon', () => numberIn(own) > 0);
  const short = bench.message(shell(daemon(stray)));
  bench.puller.push(short);
  expect(await bench.resultOf(short)).toMatchObject({ outcome: 'completed' });
  await gone(numberIn(stray));
  expect(processStart(numberIn(own))).not.toBeNull();
  writeFileSync(end, '');
  expect(await bench.resultOf(long)).toMatchObject({ outcome: 'completed' });
  await gone(numberIn(own));
});

test('a daemon that holds no pipe does not outlive its worker', async () => {
  await using bench = await openWorkbench();
  const worker = bench.worker();
  await worker.start();
  const pids = join(bench.directory, 'pids');
  const message = bench.message(shell(daemon(pids)));
  bench.puller.push(message);
  await bench.resultOf(message);
  await worker.stop();
  await worker.done;
  expect(processStart(numberIn(pids))).toBeNull();
});

test('a definition that sets HOME hides nothing that its command left', async () => {
  await using bench = await openWorkbench();
  await bench.worker().start();
  const pids = join(bench.directory, 'pids');
  const script = `setsid sh -c 'echo $$ > ${pids}; exec sleep 300' & until [ -s ${pids} ]; do :; done; echo done`;
  const message = bench.message(shell(script), {
    env: {
      HOME: [{ kind: 'text', text: '/root' }],
      SONAR_ATTEMPT_FOLDER: [{ kind: 'text', text: '/elsewhere' }],
    },
    outputs: [{ name: 'records', path: null, optional: false }],
  });
  bench.puller.push(message);
  const result = await bench.resultOf(message);
  const left = processStart(numberIn(pids)) !== null;
  if (left) process.kill(numberIn(pids), 'SIGKILL');
  expect(result).toMatchObject({ outcome: 'completed' });
  expect(left).toBe(false);
});

test.each([
  ['a link', 'ln -s /etc/passwd "$1"', 'a symbolic link'],
  ['a folder with a link in it', 'mkdir "$1"; echo x > "$1/fine"; ln -s /etc "$1/etc"', 'a symbolic link'],
  ['a link in place of a folder above', 'rm -r out; ln -s /etc out', 'a symbolic link'],
  ['a named pipe', 'mkfifo "$1"', 'a named pipe'],
  ['a file past the cap', 'head -c 200000 /dev/zero > "$1"', 'the cap'],
  [
    'a folder past the cap in all',
    'mkdir "$1"; for n in 1 2 3; do head -c 40000 /dev/zero > "$1/$n"; done',
    'the cap',
  ],
  [
    'a path of 1,024 characters that are more bytes',
    'name=$(printf "漢%.0s" $(seq 80)); folder="$1/$name/$name/$name/$name/$name"; mkdir -p "$folder"; echo x > "$folder/f"',
    'longer than 1024 bytes',
  ],
  ['a name that is not UTF-8', `mkdir "$1"; touch "$1/$(printf '\\377')"`, 'not valid UTF-8'],
])('%s is refused as an output', async (_, script, reason) => {
  await using bench = await openWorkbench();
  await bench.worker({ outputCapBytes: 100_000 }).start();
  const message = bench.message([...shell(script), 'script', [{ kind: 'out', name: 'records' }]], {
    outputs: [{ name: 'records', path: 'a/records', optional: false }],
  });
  bench.puller.push(message);
  const result = await bench.resultOf(message);
  expect(result).toMatchObject({
    outcome: 'failed',
    exitCode: 0,
    manifest: [],
    failure: { code: 'output_refused' },
  });
  expect(result.failure?.message).toContain(reason);
  expect(bench.api.objects.size).toBe(0);
});

test('a missing output is a failure unless it is optional', async () => {
  await using bench = await openWorkbench();
  await bench.worker().start();
  const required = bench.message(['/bin/true'], {
    outputs: [{ name: 'records', path: 'records', optional: false }],
  });
  const optional = bench.message(['/bin/true'], {
    outputs: [{ name: 'records', path: 'records', optional: true }],
  });
  bench.puller.push(required);
  bench.puller.push(optional);
  expect(await bench.resultOf(required)).toMatchObject({
    outcome: 'failed',
    failure: { code: 'output_missing' },
  });
  expect(await bench.resultOf(optional)).toMatchObject({ outcome: 'completed', manifest: [] });
});
