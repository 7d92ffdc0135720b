// Time is jest's: what is under test is how many wakes are sent in it.
import type { ScanId } from '#sonar/contracts/ids.ts';
import { createScanWaker } from '#sonar/flow/wake-scans.ts';
import { createLogger } from '#sonar/platform/logger.ts';

const scan = 'scan' as ScanId;
const other = 'other' as ScanId;

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

function waker() {
  const sent: ScanId[] = [];
  const temporal = {
    wakeScan: (scanId: ScanId) => {
      sent.push(scanId);
      return Promise.resolve(true);
    },
  };
  return { sent, waker: createScanWaker({ temporal, everyMs: 1_000, log: createLogger('test', 'silent') }) };
}

test('the first wake goes at once, a thousand within the period become one at its end', () => {
  const { sent, waker: woken } = waker();
  for (let count = 0; count < 1_000; count += 1) woken.wake(scan);
  expect(sent).toEqual([scan]);
  jest.advanceTimersByTime(1_000);
  expect(sent).toEqual([scan, scan]);
  jest.advanceTimersByTime(10_000);
  expect(sent).toEqual([scan, scan]);
});

test('scans do not wait for each other', () => {
  const { sent, waker: woken } = waker();
  woken.wake(scan);
  woken.wake(other);
  expect(sent).toEqual([scan, other]);
});

test('wakes of a scan that is always busy thin out, and a quiet period starts anew', () => {
  const { sent, waker: woken } = waker();
  const busyFor = (seconds: number): number => {
    const before = sent.length;
    for (let ms = 0; ms < seconds * 1_000; ms += 100) {
      woken.wake(scan);
      jest.advanceTimersByTime(100);
    }
    return sent.length - before;
  };
  expect(busyFor(15)).toBeGreaterThan(13);
  busyFor(120);
  expect(busyFor(60)).toBeLessThanOrEqual(21);
  jest.advanceTimersByTime(10_000);
  expect(busyFor(15)).toBeGreaterThan(13);
});

test('a wake that was promised is sent at the stop, and nothing after it', async () => {
  const { sent, waker: woken } = waker();
  woken.wake(scan);
  woken.wake(scan);
  await woken.stop();
  expect(sent).toEqual([scan, scan]);
  jest.advanceTimersByTime(60_000);
  expect(sent).toEqual([scan, scan]);
});

test('a wake that Temporal does not take is logged and forgotten', async () => {
  const failing = createScanWaker({
    temporal: { wakeScan: () => Promise.reject(new Error('away')) },
    everyMs: 1_000,
    log: createLogger('test', 'silent'),
  });
  failing.wake(scan);
  await expect(failing.stop()).resolves.toBeUndefined();
});
