import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { createStreamSink } from '#sonar/worker/stream-sink.ts';

const directory = mkdtempSync(join(tmpdir(), 'sonar-sink-'));
let files = 0;
afterAll(() => rmSync(directory, { recursive: true, force: true }));
const freshPath = () => join(directory, String((files += 1)));

test('what is kept is the beginning, however it was cut into chunks, and its hash is that of the file', () => {
  const chunks = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 12 });
  fc.assert(
    fc.property(chunks, fc.nat(100), fc.nat(100), (parts, capBytes, headBytes) => {
      const all = Buffer.concat(parts);
      const path = freshPath();
      const sink = createStreamSink({ path, capBytes, headBytes });
      for (const part of parts) sink.write(Buffer.from(part));
      const end = sink.finish();
      const kept = all.subarray(0, capBytes);
      expect(readFileSync(path)).toEqual(kept);
      expect(end).toEqual({
        head: kept.subarray(0, headBytes).toString('base64'),
        size: kept.length,
        sha256: createHash('sha256').update(kept).digest('hex'),
        truncated: all.length > capBytes,
        fault: null,
      });
      expect(sink.finish()).toBe(end);
    }),
    { numRuns: 60 },
  );
});

test('nothing may stand where the file is to be', () => {
  const path = freshPath();
  createStreamSink({ path, capBytes: 1, headBytes: 0 }).finish();
  expect(() => createStreamSink({ path, capBytes: 1, headBytes: 0 })).toThrow('EEXIST');
});

test('what was cut short says so, and takes no more', () => {
  const sink = createStreamSink({ path: null, capBytes: 100, headBytes: 100 });
  sink.write(Buffer.from('whole'));
  sink.cut('held open');
  sink.write(Buffer.from('late'));
  expect(sink.finish()).toMatchObject({ size: 5, truncated: true, fault: 'held open' });
});
