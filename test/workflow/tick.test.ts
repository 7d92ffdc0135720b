// A tick follows the plan's report, and nothing but it.
import { createScanWaker } from '#sonar/flow/wake-scans.ts';
import { createLogger } from '#sonar/platform/logger.ts';
import { HistoryView } from './history-view.ts';
import { moved, over, report, step } from './scripted-scan.ts';
import { sendWakes, useTimeSkipping } from './scripted-temporal.ts';

const temporal = useTimeSkipping();

test('ticks wait 5 s, doubling to 60 s while nothing changes, and a change brings the 5 s back', async () => {
  const reports = [
    ...Array.from({ length: 6 }, () => report()),
    report({ steps: [step({ completed: 1 })] }),
    report({ steps: [step({ completed: 1 })] }),
    over(),
  ];
  const run = await temporal.current.startScan(() => ({ plan: (call) => reports[call - 1] ?? over() }));
  expect(await run.handle.result()).toEqual({ status: 'Completed' });
  const history = await HistoryView.of(run.handle);
  expect(history.waits.map((wait) => wait.ms)).toEqual(
    [5, 10, 20, 40, 60, 60, 5, 10].map((seconds) => seconds * 1_000),
  );
  expect(history.waits.map((wait) => wait.summary).slice(5, 7)).toEqual([
    'nothing changed',
    'completed 1 of ports',
  ]);
  // An idle tick costs one activity: 11 events of timer, activity and two workflow tasks.
  expect(run.calls.names.every((name) => name === 'plan')).toBe(true);
  expect(history.length).toBeLessThanOrEqual(12 + 11 * 8);
});

test('place is called only when there is something pending, settle only when it may be over', async () => {
  const reports = [
    report({ pending: true, steps: [step({ pending: 9 })], made: 9 }),
    report({ steps: [step({ inFlight: 9 })] }),
    report({ settleable: true, steps: [step({ completed: 9 })] }),
    report({ settleable: true, pending: true, steps: [step({ completed: 9, pending: 1 })] }),
  ];
  const run = await temporal.current.startScan(() => ({
    plan: (call) => reports[call - 1] ?? over('Failed'),
    place: () => ({ placed: '8 on nmap' }),
    settle: (call) => ({ status: call === 1 ? 'Running' : 'CompletedWithErrors' }),
  }));
  expect(await run.handle.result()).toEqual({ status: 'CompletedWithErrors' });
  expect(run.calls.names).toEqual(['plan', 'place', 'plan', 'plan', 'settle', 'plan', 'place', 'settle']);
  const history = await HistoryView.of(run.handle);
  expect(history.waits[0]).toEqual({ ms: 5_000, summary: 'made 9; placed 8 on nmap' });
  expect(history.activities).toContainEqual({ name: 'place', summary: 'place 9 pending' });
});

test('a recovery pass is asked for after placement, only when something may be lost, and told in the summary', async () => {
  const reports = [
    report({ pending: true, stale: true, steps: [step({ pending: 1, inFlight: 2 })] }),
    report({ steps: [step({ pending: 1, inFlight: 2 })] }),
    report({ status: 'Paused', stale: true, steps: [step({ pending: 1, inFlight: 2 })] }),
  ];
  const run = await temporal.current.startScan(() => ({
    plan: (call) => reports[call - 1] ?? over(),
    recover: (call) => ({ recovered: call === 1 ? '2 lost tasks' : '' }),
  }));
  await run.handle.result();
  expect(run.calls.names).toEqual(['plan', 'place', 'recover', 'plan', 'plan', 'recover', 'plan']);
  const history = await HistoryView.of(run.handle);
  expect(history.waits.map((wait) => wait.summary)).toEqual([
    'recovered 2 lost tasks; 2 in flight',
    '2 in flight',
    '2 in flight',
  ]);
  expect(history.activities).toContainEqual({ name: 'recover', summary: 'look for lost tasks' });
});

test('a drain is started when results wait to be read, one at a time, and no tick waits for it', async () => {
  const release = Promise.withResolvers<void>();
  const drainsSeen: number[] = [];
  const run = await temporal.current.startScan(({ handle, calls }) => ({
    async plan(call) {
      drainsSeen.push(calls.count('drain'));
      if (call === 4) {
        release.resolve();
        await HistoryView.when(handle, (history) => history.completed('drain') === 1);
      }
      return call < 5 ? moved(call, { unread: true }) : over();
    },
    async drain(call) {
      if (call === 1) await release.promise;
      return { batches: 1 };
    },
  }));
  // Time stands still while an activity runs, so wakes bring the ticks about.
  await run.calls.begun('drain', 1);
  for (const tick of [2, 3, 4]) {
    await temporal.current.gateway.wakeScan(run.scanId);
    await run.calls.begun('plan', tick);
  }
  expect(await run.handle.result()).toEqual({ status: 'Completed' });
  expect(drainsSeen.slice(0, 4)).toEqual([0, 1, 1, 1]);
  expect(run.calls.count('drain')).toBe(2);
});

test('a wake cuts the wait short', async () => {
  const run = await temporal.current.startScan(() => ({ plan: (call) => (call < 6 ? report() : over()) }));
  // 5, 10 and 20 s have passed; the wait of 40 s has begun.
  await temporal.current.environment.sleep(40_000);
  await run.calls.begun('plan', 4);
  await HistoryView.when(run.handle, (history) => history.waits.length === 4);
  await temporal.current.gateway.wakeScan(run.scanId);
  await run.calls.begun('plan', 5);
  const history = await HistoryView.when(run.handle, (view) => view.waits.length === 5);
  expect(history.cancelledWaits).toBe(1);
  expect(await run.handle.result()).toEqual({ status: 'Completed' });
});

test('a wake during a tick is not lost: the next tick follows without a wait', async () => {
  const run = await temporal.current.startScan(({ scanId }) => ({
    async plan(call) {
      if (call <= 2) await temporal.current.gateway.wakeScan(scanId);
      return call <= 3 ? report({ pending: call === 2 }) : over();
    },
  }));
  await run.handle.result();
  const history = await HistoryView.of(run.handle);
  expect(run.calls.names).toEqual(['plan', 'plan', 'place', 'plan', 'plan']);
  expect(history.waits).toHaveLength(1);
});

test('a pass that was cut short goes on at once', async () => {
  const run = await temporal.current.startScan(() => ({
    plan: (call) => (call < 4 ? moved(call, { more: true }) : over()),
  }));
  await run.handle.result();
  expect((await HistoryView.of(run.handle)).waits).toEqual([]);
});

test('a scan that is not there ends its workflow', async () => {
  const run = await temporal.current.startScan(() => ({ plan: () => report({ status: undefined }) }));
  expect(await run.handle.result()).toEqual({ status: 'gone' });
});

test('a late wake to a scan that is over makes its workflow look again', async () => {
  const reports = [over(), report(), over('Cancelled')];
  const run = await temporal.current.startScan(({ scanId }) => ({
    async plan(call) {
      // Reopened after the look that found it over: committed first, then signalled.
      if (call === 1) await temporal.current.gateway.wakeScan(scanId);
      return reports[call - 1] ?? over('Failed');
    },
  }));
  expect(await run.handle.result()).toEqual({ status: 'Cancelled' });
  expect(run.calls.count('plan')).toBe(3);
});

test('2,000 wakes within a period cost two ticks', async () => {
  const run = await temporal.current.startScan(({ scanId }) => ({
    async plan(call) {
      if (call === 1) {
        const waker = createScanWaker({
          temporal: temporal.current.gateway,
          everyMs: 60_000,
          log: createLogger('test', 'silent'),
        });
        for (let wake = 0; wake < 2_000; wake += 1) waker.wake(scanId);
        await waker.stop();
      }
      return call <= 2 ? report() : over();
    },
  }));
  await run.handle.result();
  const history = await HistoryView.of(run.handle);
  expect(history.signals).toBe(2);
  expect(history.length).toBeLessThan(50);
});

test('2,000 wakes that nobody coalesced cost an event each, but only one more tick', async () => {
  const run = await temporal.current.startScan((scan) => ({
    async plan(call) {
      if (call === 1) await sendWakes(scan, 2_000);
      return call <= 2 ? report() : over();
    },
  }));
  await run.handle.result();
  expect(run.calls.names).toEqual(['plan', 'plan', 'plan']);
  const lengths = (await temporal.current.chainOf(run)).map((history) => history.length);
  expect(lengths.reduce((sum, length) => sum + length, 0)).toBeLessThan(2_000 + 3 * 30);
});
