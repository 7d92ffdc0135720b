import { createHash } from 'node:crypto';
import { resultSchema } from '#sonar/contracts/worker-api.ts';
import { resultDigest } from '#sonar/domain/result-digest.ts';
import { newId } from '#sonar/platform/ids.ts';
import { buildResult, failureOf, judge, judgeNotStarted, noStreams } from '#sonar/worker/command-result.ts';

const dispatch = {
  command: [[{ kind: 'text' as const, text: 'nmap' }]],
  okExit: [0, 3],
  timeoutMs: 1_000,
  step: 'ports',
};
const exit = {
  kind: 'exited' as const,
  exitCode: 0,
  signal: null,
  timedOut: false,
  durationMs: 5,
  ...noStreams,
};
const fine = { missing: [], refused: [] };
const bad = { missing: ['records'], refused: ['output other: a symbolic link'] };

test.each([
  ['success', exit, fine, false, 'completed', undefined],
  ['another exit code that counts as success', { ...exit, exitCode: 3 }, fine, false, 'completed', undefined],
  ['a bad exit code', { ...exit, exitCode: 1 }, fine, false, 'failed', 'command_failed'],
  ['a signal', { ...exit, exitCode: null, signal: 'SIGSEGV' }, fine, false, 'failed', 'command_failed'],
  [
    'a timeout, even one that the command took for success',
    { ...exit, timedOut: true },
    fine,
    false,
    'timed_out',
    'command_timed_out',
  ],
  ['a cancel, whatever else', { ...exit, timedOut: true }, bad, true, 'cancelled', 'scan_cancelled'],
  ['a refused output', exit, bad, false, 'failed', 'output_refused'],
  ['a missing output', exit, { missing: ['records'], refused: [] }, false, 'failed', 'output_missing'],
  ['a bad exit code outweighs its outputs', { ...exit, exitCode: 1 }, bad, false, 'failed', 'command_failed'],
] as const)('%s', (_, end, faults, cancelled, outcome, code) => {
  const verdict = judge(
    dispatch,
    end,
    { missing: [...faults.missing], refused: [...faults.refused] },
    cancelled,
  );
  expect(verdict.outcome).toBe(outcome);
  expect(verdict.failure?.code).toBe(code);
});

test.each([
  ['ENOENT', 'command_not_found'],
  ['EACCES', 'command_not_found'],
  ['E2BIG', 'command_failed'],
  ['ELOOP', 'command_failed'],
])('a start that fails with %s is %s', (code, failure) => {
  const at = { program: 'nmap', worker: 'w1', image: 'img', tag: 'scan', path: '/bin' };
  expect(judgeNotStarted({ kind: 'not_started', code, message: 'spawn', own: false }, at)).toMatchObject({
    code: failure,
  });
});

test.each([
  ['EAGAIN', false],
  ['ENOSPC', false],
  ['EIO', false],
  // Of the command's folder or its streams, not of the program.
  ['ENOENT', true],
])("a machine that cannot start anything (%s) is the worker's trouble", (code, own) => {
  const at = { program: 'nmap', worker: 'w1', image: 'img', tag: 'scan', path: '/bin' };
  expect(judgeNotStarted({ kind: 'not_started', code, message: 'spawn', own }, at)).toBe('lack');
});

test('a result passes its own schema and carries the digest that the api recomputes', () => {
  const identity = {
    attemptId: newId<string>(),
    dispatchKey: 'a/b/c',
    worker: 'w1',
    incarnationId: newId<string>(),
  };
  const streams = {
    ...noStreams,
    stderr: { ...noStreams.stderr, head: Buffer.from('oops').toString('base64'), size: 4 },
  };
  const result = buildResult(
    identity,
    { outcome: 'failed', failure: failureOf('command_failed', 'no') },
    { exitCode: 1, signal: null, durationMs: 12, stdoutDeclared: true, ...streams },
    [{ output: 'records', path: 'stdout', size: 0, sha256: createHash('sha256').digest('hex') }],
  );
  expect(resultSchema.parse(result)).toEqual(result);
  expect(result.stdout.head).toBeNull();
  expect(result.digest).toBe(resultDigest(result));
});

test('a failure message holds nothing that PostgreSQL or JSON would refuse', () => {
  const { message } = failureOf('command_failed', `a\0b\uD800c${'x'.repeat(3_000)}`);
  expect(message).toHaveLength(2_000);
  expect(message.isWellFormed()).toBe(true);
  expect(message).not.toContain('\0');
  // A cut in the middle of a pair would leave half of it.
  expect(failureOf('command_failed', `x${'😀'.repeat(1_500)}`).message.isWellFormed()).toBe(true);
});
