// A process that reads holds leases, too: whoever reads lets its timers and sockets have their turns.
import type { ReadSpec } from '#sonar/contracts/definition.ts';
import { paced, sliceBytes } from '#sonar/readers/paced-source.ts';
import { readerFor, readerNames } from '#sonar/readers/registry.ts';

/** How often the event loop came round while `run` ran. */
async function turnsOf(run: () => Promise<unknown>): Promise<number> {
  let turns = -1;
  let counting = true;
  const count = (): void => {
    turns += 1;
    if (counting) setImmediate(count);
  };
  count();
  await run();
  counting = false;
  return turns;
}

async function* inMemory(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

const megabyte = 1024 * 1024;

test.each(readerNames)(
  '%s lets the rest of the process go on while it reads what is in memory',
  async (name) => {
    const spec: ReadSpec = { reader: name, record: null, fields: {} };
    const lines = Buffer.from(`<nmaprun>{"a":"${'b'.repeat(1_000)}"},\n`.repeat(1_024));
    for (const chunks of [
      [lines],
      Array.from({ length: 1024 }, (_, at) => lines.subarray(at * 1024, (at + 1) * 1024)),
    ]) {
      const turns = await turnsOf(async () => {
        for await (const _ of readerFor(spec).read(inMemory(chunks), spec));
      });
      expect(turns).toBeGreaterThanOrEqual(Math.floor(megabyte / sliceBytes) - 2);
    }
  },
);

test('what comes out is what went in', async () => {
  const given = [0, 1, sliceBytes, sliceBytes + 1, 3 * sliceBytes - 1].map((size, fill) =>
    Buffer.alloc(size, fill),
  );
  const slices: Uint8Array[] = [];
  for await (const slice of paced(inMemory(given))) slices.push(slice);
  expect(Buffer.concat(slices).equals(Buffer.concat(given))).toBe(true);
  expect(Math.max(...slices.map(({ byteLength }) => byteLength))).toBe(sliceBytes);
});
