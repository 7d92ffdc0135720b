// What this machine lacks (room on its disk, descriptors, processes) is not blamed on a command.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createUploader } from '#sonar/worker/uploads.ts';
import { openWorkbench } from './workbench.ts';

const directory = mkdtempSync(join(tmpdir(), 'sonar-lacks-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** What a script of this folder prints under a limit of the shell's. */
function underLimit(limit: string, script: URL, argument: string): unknown {
  const path = fileURLToPath(script);
  const node = [process.execPath, '--disable-warning=ExperimentalWarning', path, argument];
  const text = execFileSync('/bin/bash', ['-c', `ulimit ${limit}; exec "$@"`, 'bash', ...node], {
    encoding: 'utf8',
    timeout: 30_000,
  });
  return JSON.parse(text);
}

test('a stream that a full disk cut half way through a write is as long on disk as is claimed of it', () => {
  const { end, onDisk } = underLimit(
    '-f 8',
    new URL('./sink-process.ts', import.meta.url),
    join(directory, 'cut'),
  ) as {
    end: { size: number; fault: string; truncated: boolean };
    onDisk: number;
  };
  expect(end).toMatchObject({ fault: 'EFBIG', truncated: true });
  expect(end.size).toBeGreaterThan(0);
  expect(onDisk).toBe(end.size);
});

test('a folder for streams that is gone sends the attempt elsewhere, and no program is called missing', async () => {
  await using bench = await openWorkbench();
  await bench.worker().start();
  rmSync(join(bench.directory, 'bench', 'streams'), { recursive: true });
  const message = bench.message(['/bin/echo', 'x'], {
    outputs: [{ name: 'records', path: null, optional: false }],
  });
  bench.puller.push(message);
  await bench.watch.until('the release', () => bench.api.of('release').length === 1);
  expect(bench.api.of('release')).toMatchObject([{ attemptId: message.attemptId, reason: 'interrupted' }]);
  expect(bench.api.of('result')).toEqual([]);
});

test('a helper that cannot be started costs the commands of that time, and no stop waits for it', () => {
  expect(
    underLimit('-c 0', new URL('./helperless-process.ts', import.meta.url), join(directory, 'helperless')),
  ).toEqual(['helper_lost', 'helper_lost', 'exited', 'stopped']);
});

test('outputs that cannot be read for want of descriptors are not refused', () => {
  expect(
    underLimit('-n 128', new URL('./lacks-process.ts', import.meta.url), join(directory, 'emfile')),
  ).toBe('EMFILE');
});

test('an output that this machine cannot read any more is neither uploaded nor lost: its attempt is to be given back', async () => {
  await using bench = await openWorkbench();
  bench.api.store = () => ({ status: 400, body: 'BadDigest' });
  // Opens as an empty file, and answers every read with EIO.
  const entry = { output: 'records', path: 'mem', size: 0, sha256: 'a'.repeat(64) };
  const uploader = createUploader([{ entry, path: '/proc/self/mem' }]);
  const ask = async () => ({
    kind: 'answer' as const,
    value: { files: [{ url: `${bench.api.url}/objects/a/${entry.sha256}?size=0`, headers: {} }] },
  });
  const kinds: string[] = [];
  while (kinds.at(-1) !== 'unreadable' && kinds.length < 50)
    kinds.push((await uploader.upload(ask, new AbortController().signal)).kind);
  expect(kinds.slice(0, 5)).toEqual(Array.from({ length: 5 }, () => 'passing'));
  expect(kinds.at(-1)).toBe('unreadable');
});
