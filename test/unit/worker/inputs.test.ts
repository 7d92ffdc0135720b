// What an attempt reads is fetched before its command runs; what it shares with others is held until it has ended.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { downloadInputs } from '#sonar/worker/inputs.ts';
import { attemptFolders } from '#sonar/worker/paths.ts';
import type { SharedFiles } from '#sonar/worker/shared-files.ts';

test('shared files that an attempt holds are known also when a later input fails on this machine', async () => {
  const base = mkdtempSync(join(tmpdir(), 'sonar-inputs-'));
  try {
    const folders = attemptFolders(base, 'a');
    // A file where the folder of the attempt's inputs has to be.
    writeFileSync(join(base, 'a'), '');
    const shared = { use: () => Promise.resolve({ folder: base }) } as unknown as SharedFiles;
    const held: string[] = [];
    const transfer = {
      page: () => Promise.reject(new Error('nothing is asked for')),
      signal: new AbortController().signal,
      forMs: 1_000,
      retryFirstMs: 1,
      retryMaxMs: 1,
    };
    const inputs = [
      { name: 'words', as: 'directory' as const, digest: 'd'.repeat(64) },
      { name: 'found', as: 'file' as const },
    ];
    await expect(downloadInputs(inputs, folders, shared, transfer, held)).rejects.toThrow(/ENOTDIR/);
    expect(held).toEqual(['d'.repeat(64)]);
  } finally {
    rmSync(base, { recursive: true, force: true });
  }
});
