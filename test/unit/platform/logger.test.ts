// What the log is written to may be full, stuck or gone. That costs lines and never the process.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogDestination } from '#sonar/platform/logger.ts';

const script = require.resolve('./log-to-stderr.ts');
const node = [process.execPath, '--disable-warning=ExperimentalWarning', script] as const;
const directory = mkdtempSync(join(tmpdir(), 'sonar-logger-'));
afterAll(() => rmSync(directory, { recursive: true }));

const fault = (code: string) => Object.assign(new Error(`${code}: no`), { code });

test('a log on a full disk neither ends the process nor holds up its end', () => {
  const [program, ...args] = node;
  const full = openSync('/dev/full', 'w');
  const end = spawnSync(program, args, {
    stdio: ['ignore', 'pipe', full],
    timeout: 8_000,
    killSignal: 'SIGKILL',
    encoding: 'utf8',
  });
  closeSync(full);
  expect([end.stdout, end.signal, end.status]).toEqual(['alive\n', null, 0]);
});

test('a log that may not grow any more neither ends the process nor holds up its end', () => {
  const file = openSync(join(directory, 'log'), 'w');
  const end = spawnSync('/bin/bash', ['-c', 'ulimit -f 0; exec "$@"', 'bash', ...node], {
    stdio: ['ignore', 'pipe', file],
    timeout: 8_000,
    killSignal: 'SIGKILL',
    encoding: 'utf8',
  });
  closeSync(file);
  expect([end.stdout, end.signal, end.status]).toEqual(['alive\n', null, 0]);
});

test('a log whose reader has gone neither ends the process nor holds up its end', async () => {
  const [program, ...args] = node;
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  child.stderr.destroy();
  const [said, [code, signal]] = await Promise.all([child.stdout.toArray(), once(child, 'exit')]);
  expect([Buffer.concat(said as Buffer[]).toString(), signal, code]).toEqual(['alive\n', null, 0]);
});

test('lines go on when there is room again, after one that says how many are missing', () => {
  let room = 6;
  let written = '';
  const destination = createLogDestination(
    (bytes) => {
      if (room === 0) throw fault('ENOSPC');
      const taken = bytes.subarray(0, room);
      room -= taken.length;
      written += taken.toString();
      return taken.length;
    },
    { role: 'test' },
  );
  for (const line of ['one\n', 'two\n', 'three\n']) destination.write(line);
  expect(written).toBe('one\ntw');
  room = 10_000;
  destination.write('four\n');
  const [first, cut, notice, last] = written.split('\n');
  expect([first, cut, last]).toEqual(['one', 'tw', 'four']);
  expect(JSON.parse(notice ?? '')).toMatchObject({
    level: 40,
    role: 'test',
    operation: 'log_lines_dropped',
    lines: 2,
  });
});

test('a reader that takes nothing now is waited for, but once and not for long', () => {
  let tries = 0;
  let stuckFor = 3;
  let written = '';
  const destination = createLogDestination((bytes) => {
    tries += 1;
    if (tries > 1_000) throw new Error('tried for ever');
    if (stuckFor > 0) {
      stuckFor -= 1;
      throw fault('EAGAIN');
    }
    written += bytes.toString();
    return bytes.length;
  }, {});
  destination.write('waited for\n');
  expect(written).toBe('waited for\n');
  stuckFor = Number.POSITIVE_INFINITY;
  destination.write('dropped\n');
  const before = tries;
  for (let line = 0; line < 50; line += 1) destination.write('dropped\n');
  expect(tries - before).toBe(50);
});

test('a log is lines of JSON', () => {
  const file = join(directory, 'good');
  const [program, ...args] = node;
  const descriptor = openSync(file, 'w');
  spawnSync(program, args, { stdio: ['ignore', 'ignore', descriptor], timeout: 8_000 });
  closeSync(descriptor);
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  expect(lines.map((line) => (JSON.parse(line) as { operation: string }).operation)).toEqual([
    'first',
    'second',
    'third',
  ]);
});
