import { maxTimerMs, pause } from '#sonar/platform/wait.ts';
import { workerConfigSchema } from '#sonar/worker/config.ts';
import { createDrainBound } from '#sonar/worker/drain-bound.ts';

const day = 86_400_000;
const next = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

test.each([25 * day, 1000 * day])('a drain of %i ms is not over at once', async (forMs) => {
  const bound = createDrainBound({ reason: 'shutdown', forMs, graceMs: 0 });
  await next(50);
  const over = bound.signal.aborted;
  bound.clear();
  expect(over).toBe(false);
});

test('a drain that is longer than a timer is over when it is', () => {
  jest.useFakeTimers();
  const bound = createDrainBound({ reason: 'shutdown', forMs: 60 * day, graceMs: 0 });
  jest.advanceTimersByTime(60 * day - 1_000);
  expect(bound.signal.aborted).toBe(false);
  jest.advanceTimersByTime(2_000);
  expect(bound.signal.aborted).toBe(true);
  jest.useRealTimers();
});

test('a pause beyond what a timer holds is no pause of nothing', async () => {
  const ending = new AbortController();
  let over = false;
  const paused = pause(30 * day, ending.signal).then(() => {
    over = true;
  });
  await next(50);
  expect(over).toBe(false);
  ending.abort();
  await paused;
});

test('a wait that no timer can hold is refused where it is set', () => {
  const config = {
    apiUrl: 'http://127.0.0.1/',
    token: 't',
    amqpUrl: 'a',
    name: 'w',
    tags: ['a'],
    directory: '/d',
  };
  expect(workerConfigSchema.safeParse({ ...config, drainMs: maxTimerMs }).success).toBe(true);
  const refused = workerConfigSchema.safeParse({ ...config, drainMs: maxTimerMs + 1, termGraceMs: 1e15 });
  expect(refused.error?.issues.map(({ path, message }) => [path[0], message])).toEqual([
    ['termGraceMs', 'is longer than 24 days'],
    ['drainMs', 'is longer than 24 days'],
  ]);
});
