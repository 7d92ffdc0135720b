import { forEachOf } from '#sonar/worker/for-each-of.ts';
import { createGate, untilAborted, within } from '#sonar/worker/gate.ts';
import { transferTimeoutMs } from '#sonar/worker/transfer-time.ts';

const never = new AbortController().signal;

test('a gate holds those who come while it is shut, and tells those inside when it shuts', async () => {
  const gate = createGate();
  await gate.opened(never);
  const inside = gate.signal;
  gate.shut();
  gate.shut();
  expect([gate.isOpen, inside.aborted]).toEqual([false, true]);
  let passed = false;
  const waiting = gate.opened(never).then(() => {
    passed = true;
  });
  expect(passed).toBe(false);
  gate.open();
  await waiting;
  expect([gate.isOpen, gate.signal.aborted]).toEqual([true, false]);
});

test('an aborted signal ends the wait at a shut gate', async () => {
  const gate = createGate();
  gate.shut();
  const giveUp = new AbortController();
  const waiting = gate.opened(giveUp.signal);
  giveUp.abort();
  await waiting;
  await gate.opened(giveUp.signal);
  expect(gate.isOpen).toBe(false);
});

test('within tells in time from too late', async () => {
  expect(await within(Promise.resolve(), 60_000)).toBe(true);
  expect(await within(new Promise(() => undefined), 1)).toBe(false);
  await untilAborted(new Promise(() => undefined), AbortSignal.abort());
});

test('at most so many at once, every item once, and the first result ends it', async () => {
  let active = 0;
  let most = 0;
  const seen: number[] = [];
  const items = Array.from({ length: 20 }, (_, index) => index);
  const visit = async (item: number) => {
    active += 1;
    most = Math.max(most, active);
    seen.push(item);
    await Promise.resolve();
    active -= 1;
    return null;
  };
  expect(await forEachOf(items, 3, visit)).toBeNull();
  expect(seen).toEqual(items);
  expect(most).toBe(3);

  seen.length = 0;
  const end = await forEachOf(items, 2, async (item) => {
    seen.push(item);
    return item === 4 ? 'enough' : null;
  });
  expect(end).toBe('enough');
  expect(seen.length).toBeLessThan(8);
});

test('the time for a transfer is a whole number that a timer takes', () => {
  for (const size of [0, 1, 63, 65, 2 ** 31, Number.MAX_SAFE_INTEGER]) {
    const ms = transferTimeoutMs(size);
    expect(Number.isInteger(ms)).toBe(true);
    expect(ms).toBeGreaterThanOrEqual(60_000);
    expect(ms).toBeLessThan(2 ** 31);
  }
});
