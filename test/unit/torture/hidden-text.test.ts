import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { shownSecrets } from '../../torture/oracle/hidden-text.ts';

test('a secret is found in texts and in bytes, however deep', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'sonar-hidden-'));
  try {
    mkdirSync(join(directory, 'a', 'b'), { recursive: true });
    writeFileSync(join(directory, 'a', 'b', 'data'), Buffer.from([0, 255, ...Buffer.from('-one.+'), 0]));
    writeFileSync(join(directory, 'log'), 'nothing of it\ntwo\n');
    expect(await shownSecrets(directory, ['-one.+', 'three'])).toEqual([
      { kind: 'leaked', what: `a secret stands in ${join(directory, 'a', 'b', 'data')}` },
    ]);
    expect(await shownSecrets(directory, ['-one.-', 'three'])).toEqual([]);
    expect(await shownSecrets(directory, [])).toEqual([]);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
