import { createLogger } from '#sonar/platform/logger.ts';
import { createLoop } from '#sonar/platform/loop.ts';

const log = createLogger('test', 'silent');
const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
};

test('work is done again at once while there is more, and a fault rests like an empty round', async () => {
  let rounds = 0;
  const loop = createLoop({
    name: 'busy',
    minRestMs: 1,
    maxRestMs: 1,
    log,
    work: () => {
      rounds += 1;
      if (rounds === 3) return Promise.reject(new Error('once'));
      return Promise.resolve(rounds < 5);
    },
  });
  await loop.start();
  await until(() => rounds >= 6);
  await loop.stop();
  const stopped = rounds;
  await new Promise((resolve) => setImmediate(resolve));
  expect(rounds).toBe(stopped);
});

test('a poke ends a rest that would last for hours, and a stop does too', async () => {
  let rounds = 0;
  const hourMs = 3_600_000;
  const loop = createLoop({
    name: 'idle',
    minRestMs: hourMs,
    maxRestMs: hourMs,
    log,
    work: () => {
      rounds += 1;
      return Promise.resolve(false);
    },
  });
  await loop.start();
  await until(() => rounds === 1);
  loop.poke();
  await until(() => rounds === 2);
  await loop.stop();
  expect(rounds).toBe(2);
});
