// How a run of the workflow ends: by cancel, by continue-as-new, by the scan's end; and what faults do not end.
import { ApplicationFailure } from '@temporalio/common';
import { HistoryView } from './history-view.ts';
import { moved, over, report } from './scripted-scan.ts';
import { sendWakes, useTimeSkipping } from './scripted-temporal.ts';

const temporal = useTimeSkipping();
// A test that hangs keeps its server busy: the shorter the better.
jest.setTimeout(30_000);
const moreThanARun = 2_050;

describe('cancel from Temporal', () => {
  test('is committed once, and the scan is seen to its end', async () => {
    const reports = [
      report(),
      report({ status: 'Cancelling' }),
      report({ status: 'Cancelling', settleable: true }),
    ];
    const run = await temporal.current.startScan(() => ({
      plan: (call) => reports[call - 1] ?? over('Failed'),
      settle: () => ({ status: 'Cancelled' }),
    }));
    await run.calls.begun('plan', 1);
    await run.handle.cancel();
    expect(await run.handle.result()).toEqual({ status: 'Cancelled' });
    expect(run.calls.names).toEqual(['plan', 'requestCancel', 'plan', 'plan', 'settle']);
    expect((await run.handle.describe()).status.name).toBe('COMPLETED');
  });

  test('cuts a wait short', async () => {
    const run = await temporal.current.startScan(() => ({
      plan: (call) => (call < 5 ? report() : over('Cancelled')),
    }));
    await temporal.current.environment.sleep(40_000);
    await HistoryView.when(run.handle, (history) => history.waits.length === 4);
    await run.handle.cancel();
    await run.calls.begun('requestCancel', 1);
    expect(await run.handle.result()).toEqual({ status: 'Cancelled' });
    expect((await HistoryView.of(run.handle)).cancelledWaits).toBe(1);
  });

  // Ended before the next run: this server, unlike the real one, lets no cancelled workflow continue as new.
  test('asked when the run is about to continue as new, is not lost', async () => {
    const run = await temporal.current.startScan((scan) => ({
      async plan(call) {
        if (call > 1) return over('Cancelled');
        await sendWakes(scan, moreThanARun);
        await scan.handle.cancel();
        return report();
      },
    }));
    expect(await run.handle.result()).toEqual({ status: 'Cancelled' });
    expect(run.calls.names).toEqual(['plan', 'requestCancel', 'plan']);
  });

  test('of a scan that has just ended changes nothing', async () => {
    const run = await temporal.current.startScan(({ handle }) => ({
      async plan(call) {
        if (call === 1) await handle.cancel();
        return over();
      },
    }));
    expect(await run.handle.result()).toEqual({ status: 'Completed' });
  });

  test('that cannot be committed is asked for again, at the pace of ticks', async () => {
    const run = await temporal.current.startScan(({ handle }) => ({
      async plan(call) {
        if (call === 1) await handle.cancel();
        return call < 3 ? report() : over('Cancelled');
      },
      requestCancel(call) {
        if (call <= 3) throw ApplicationFailure.nonRetryable('another version', 'schema_version');
      },
    }));
    expect(await run.handle.result()).toEqual({ status: 'Cancelled' });
    expect(run.calls.count('requestCancel')).toBe(4);
    expect((await HistoryView.of(run.handle)).waits.length).toBeGreaterThanOrEqual(3);
  });
});

describe('continue as new', () => {
  test('2,000 events end a run; the chain goes on, knows the status that is shown, and completes', async () => {
    const run = await temporal.current.startScan(({ handle }) => ({
      async plan(call) {
        if (call === 3) await sendWakes({ handle }, moreThanARun);
        return call < 6 ? moved(call, { status: call === 1 ? 'Running' : 'Paused' }) : over();
      },
    }));
    expect(await run.handle.result()).toEqual({ status: 'Completed' });
    const chain = await temporal.current.chainOf(run);
    expect(chain.map((history) => history.input)).toEqual([
      { scanId: run.scanId },
      { scanId: run.scanId, shownStatus: 'Paused' },
    ]);
    // What the first run has shown is not set again.
    expect(chain.map((history) => history.shownStatuses)).toEqual([['Paused'], ['Completed']]);
  });

  test('a busy scan is cut into runs by itself', async () => {
    const ticks = 100;
    const run = await temporal.current.startScan(() => ({
      plan: (call) => (call < ticks ? moved(call, { pending: true, settleable: true }) : over()),
      place: () => ({ placed: '8 on nmap' }),
    }));
    expect(await run.handle.result()).toEqual({ status: 'Completed' });
    const lengths = (await temporal.current.chainOf(run)).map((history) => history.length);
    expect(lengths.length).toBeGreaterThan(1);
    for (const length of lengths) expect(length).toBeLessThan(2_100);
  });

  test('waits for a drain in flight without standing still', async () => {
    const release = Promise.withResolvers<void>();
    const runsSeen: number[] = [];
    const run = await temporal.current.startScan((scan) => ({
      async plan(call) {
        if (call === 2) await sendWakes(scan, moreThanARun);
        if (call === 4) {
          release.resolve();
          await HistoryView.when(scan.handle, (history) => history.completed('drain') === 1);
        }
        runsSeen.push((await temporal.current.chainOf(scan)).length);
        return call < 6 ? moved(call, { unread: true, more: true }) : over();
      },
      async drain(call) {
        if (call === 1) await release.promise;
        return { batches: 1 };
      },
    }));
    expect(await run.handle.result()).toEqual({ status: 'Completed' });
    expect(runsSeen).toEqual([1, 1, 1, 1, 2, 2]);
    // The run that was about to end began none.
    expect(run.calls.count('drain')).toBe(2);
  });
});

describe('the end of the scan', () => {
  test('waits a moment for a drain in flight, and a wake is heard meanwhile', async () => {
    const release = Promise.withResolvers<void>();
    const run = await temporal.current.startScan(() => ({
      plan(call) {
        if (call === 1) return report({ unread: true });
        return call === 3 ? report() : over();
      },
      async drain() {
        await release.promise;
        return { batches: 0 };
      },
    }));
    await run.calls.begun('drain', 1);
    await temporal.current.gateway.wakeScan(run.scanId);
    await HistoryView.when(run.handle, (history) => history.completed('plan') === 2);
    await temporal.current.gateway.wakeScan(run.scanId);
    await run.calls.begun('plan', 3);
    release.resolve();
    expect(await run.handle.result()).toEqual({ status: 'Completed' });
  });
});

describe('faults', () => {
  test('an activity that fails for hours is waited out, and costs no events', async () => {
    const start = await temporal.current.environment.currentTimeMs();
    const hours = 2;
    const run = await temporal.current.startScan(() => ({
      async plan() {
        const now = await temporal.current.environment.currentTimeMs();
        if (now < start + hours * 3_600_000) throw new Error('the database is away');
        return over();
      },
    }));
    expect(await run.handle.result()).toEqual({ status: 'Completed' });
    expect(run.calls.count('plan')).toBeGreaterThan(hours * 100);
    expect((await HistoryView.of(run.handle)).length).toBeLessThan(15);
  });

  test('a fault that Temporal must not repeat is shown and tried again at the pace of ticks', async () => {
    const run = await temporal.current.startScan(() => ({
      plan(call) {
        if (call < 4) throw ApplicationFailure.nonRetryable('needs *migration* 7', 'schema_version');
        return over();
      },
    }));
    expect(await run.handle.result()).toEqual({ status: 'Completed' });
    const history = await HistoryView.of(run.handle);
    expect(history.waits.map((wait) => wait.ms)).toEqual([10_000, 20_000, 40_000]);
    expect(history.waits[0]?.summary).toContain('schema_version');
    expect(history.workflowTaskFailures).toBe(0);
  });

  test('a drain that fails is tried three times, then asked for again by a later tick', async () => {
    const run = await temporal.current.startScan(() => ({
      plan: (call) => (call < 8 ? report({ unread: call < 7 }) : over()),
      drain(call) {
        if (call <= 4) throw new Error('no object store');
        return { batches: 1 };
      },
    }));
    expect(await run.handle.result()).toEqual({ status: 'Completed' });
    expect(run.calls.count('drain')).toBeGreaterThan(4);
  });
});
