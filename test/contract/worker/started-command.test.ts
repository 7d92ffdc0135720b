// One command and its numbers: what is signalled is this command's, and what fails is called by its name.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { endRecordedGroups, processStart, recordGroup } from '#sonar/worker/process-trace.ts';
import type { CommandEnd, SpawnRequest } from '#sonar/worker/spawn-protocol.ts';
import { startCommand } from '#sonar/worker/started-command.ts';
import { numberIn, poll } from './watch.ts';

const directory = mkdtempSync(join(tmpdir(), 'sonar-started-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
let folders = 0;
function freshFolder(): string {
  const path = join(directory, String((folders += 1)));
  mkdirSync(path);
  return path;
}

const stream = { path: null, capBytes: 1_000, headBytes: 1_000 };
const shell = (script: string) => ['/bin/sh', '-c', script];
const requestOf = (argv: string[], changes: Partial<SpawnRequest> = {}): SpawnRequest => ({
  type: 'spawn',
  id: 'command',
  argv,
  env: { PATH: process.env.PATH ?? '' },
  cwd: freshFolder(),
  stdinPath: null,
  stdout: stream,
  stderr: stream,
  timeoutMs: 60_000,
  graceMs: 100,
  groups: freshFolder(),
  work: directory,
  ...changes,
});

test.each([
  ['its folder', { cwd: '/nonexistent/folder' }],
  ['its standard input', { stdinPath: '/nonexistent/file' }],
  ['the folder of its stdout', { stdout: { ...stream, path: '/nonexistent/file' } }],
])('a command without %s is not called a missing program', async (_, changes) => {
  const { promise, resolve } = Promise.withResolvers<CommandEnd>();
  startCommand(requestOf(['/bin/true'], changes), { spawned: () => undefined, ended: resolve });
  expect(await promise).toMatchObject({ kind: 'not_started', code: 'ENOENT', own: true });
});

test('a missing program is called that', async () => {
  const { promise, resolve } = Promise.withResolvers<CommandEnd>();
  startCommand(requestOf(['no-such-program']), { spawned: () => undefined, ended: resolve });
  expect(await promise).toMatchObject({ kind: 'not_started', code: 'ENOENT', own: false });
});

test("a command whose leader has exited is signalled no more: its number may be a stranger's", async () => {
  const pids = join(freshFolder(), 'pids');
  const { promise, resolve } = Promise.withResolvers<CommandEnd>();
  // Hidden from the search, it holds the pipes open after the leader's exit.
  const script = `setsid env -i /bin/sh -c 'echo $$ > ${pids}; exec /bin/sleep 300' & until [ -s ${pids} ]; do :; done`;
  const request = requestOf(shell(script));
  let leader = 0;
  const command = startCommand(request, {
    spawned: (pid) => {
      leader = pid;
    },
    ended: resolve,
  });
  await poll('the leader is gone and known to be', () => {
    const recorded = (() => {
      try {
        return readFileSync(join(request.groups, String(leader)), 'utf8');
      } catch {
        return null;
      }
    })();
    return recorded === null && numberIn(pids) > 0;
  });
  const signalled: number[] = [];
  const kill = jest.spyOn(process, 'kill').mockImplementation((pid) => {
    signalled.push(pid);
    return true;
  });
  command?.end(1);
  command?.kill();
  await new Promise((passed) => setTimeout(passed, 50));
  kill.mockRestore();
  process.kill(numberIn(pids), 'SIGKILL');
  await promise;
  expect(signalled).toEqual([]);
});

/** A group in which a shell waits for a `sleep`, or has left it alone. */
async function strangers(alone: boolean): Promise<{ leader: number; member: number }> {
  const pids = join(freshFolder(), 'pids');
  const leader = spawn('/bin/sh', ['-c', `sleep 300 & echo $! > ${pids}; ${alone ? '' : 'wait'}`], {
    detached: true,
    stdio: 'ignore',
  });
  if (alone) await new Promise((resolve) => leader.once('exit', resolve));
  await poll('the member runs', () => numberIn(pids) > 0);
  return { leader: leader.pid as number, member: numberIn(pids) };
}

test('a recorded group is ended while its leader is the one that was recorded', async () => {
  const groups = freshFolder();
  const { leader, member } = await strangers(false);
  recordGroup(groups, leader);
  expect(endRecordedGroups(groups)).toBe(1);
  await poll('it is gone', () => processStart(member) === null);
});

test.each([
  ['whose leader has gone', true, () => '123456 some-boot'],
  [
    'whose leader started at the same time of another boot',
    false,
    (record: string) => record.replace(/ .*/, ' another-boot'),
  ],
])("a group %s is a stranger's, and left alone", async (_, alone, recorded) => {
  const groups = freshFolder();
  const { leader, member } = await strangers(alone);
  recordGroup(groups, leader);
  const record = join(groups, String(leader));
  writeFileSync(record, recorded(readFileSync(record, 'utf8')));
  const ended = endRecordedGroups(groups);
  const lives = processStart(member) !== null;
  if (lives) process.kill(member, 'SIGKILL');
  if (!alone) process.kill(leader, 'SIGKILL');
  expect({ ended, lives }).toEqual({ ended: 0, lives: true });
});
