// Records histories/*.json: `node bin/run.mjs test/replay/record.ts [NAME…]`. README.md says when.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ApplicationFailure } from '@temporalio/common';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { maintenanceWorkflowId } from '#sonar/contracts/names.ts';
import { HistoryView } from '../workflow/history-view.ts';
import { moved, over, report, step } from '../workflow/scripted-scan.ts';
import { ScriptedTemporal } from '../workflow/scripted-temporal.ts';

const folder = join(import.meta.dirname, 'histories');

type Recording = (temporal: ScriptedTemporal, save: typeof saveHistory) => Promise<void>;

/** On the real server, so that they are what production writes: wakes and not time bring the ticks about. */
const onDevServer: Record<string, Recording> = {
  async 'scan-simple'(temporal, save) {
    const reports = [
      report({
        made: 2,
        pending: true,
        steps: [step({ pending: 2 }), step({ step: 'web', state: 'waiting' })],
      }),
      report({ unread: true, steps: [step({ inFlight: 1, completed: 1 }), step({ step: 'web' })] }),
      report({
        made: 1,
        pending: true,
        settleable: true,
        steps: [step({ completed: 2, state: 'settled' }), step({ step: 'web', pending: 1 })],
      }),
      report({
        settleable: true,
        steps: [
          step({ completed: 2, state: 'settled' }),
          step({ step: 'web', completed: 1, state: 'settled' }),
        ],
      }),
    ];
    const release = Promise.withResolvers<void>();
    const run = await temporal.startScan(({ scanId }) => ({
      async plan(call) {
        // A wake during a tick.
        if (call === 3) await temporal.gateway.wakeScan(scanId);
        return reports[call - 1] ?? over();
      },
      place: (call) => ({ placed: `${3 - call} on nmap` }),
      async drain() {
        await release.promise;
        return { batches: 1 };
      },
      settle: (call) => ({ status: call === 1 ? 'Running' : 'Completed' }),
    }));
    for (const waits of [1, 2]) {
      await HistoryView.when(run.handle, (history) => history.waits.length === waits);
      // The drain is under way when the second wait begins.
      if (waits === 2) await run.calls.begun('drain', 1);
      await temporal.gateway.wakeScan(run.scanId);
    }
    await run.calls.begun('settle', 2);
    release.resolve();
    await run.handle.result();
    save('scan-simple', await HistoryView.of(run.handle));
  },

  async 'scan-cancelled'(temporal, save) {
    const reports = [report({ pending: true }), report({ status: 'Cancelling' })];
    const run = await temporal.startScan(({ scanId }) => ({
      async plan(call) {
        if (call === 2) await temporal.gateway.wakeScan(scanId);
        return reports[call - 1] ?? report({ status: 'Cancelling', settleable: true });
      },
      settle: () => ({ status: 'Cancelled' }),
    }));
    await HistoryView.when(run.handle, (history) => history.waits.length === 1);
    await run.handle.cancel();
    await run.handle.result();
    save('scan-cancelled', await HistoryView.of(run.handle));
  },

  async 'scan-continued'(temporal, save) {
    const ticks = 24;
    const run = await temporal.startScan(() => ({
      plan: (call) =>
        call < ticks
          ? moved(call, {
              status: call < 3 ? 'Running' : 'Paused',
              pending: call < 3,
              unread: call % 4 === 1,
              more: true,
            })
          : over(),
    }));
    await run.handle.result();
    for (const [index, history] of (await temporal.chainOf(run)).entries())
      save(`scan-continued-${index + 1}`, history);
  },

  async 'scan-drain-fails'(temporal, save) {
    const run = await temporal.startScan(() => ({
      plan: (call) => (call < 4 ? moved(call, { unread: call < 3 }) : over()),
      drain() {
        throw new Error('no object store');
      },
    }));
    const failed = (times: number) => (history: HistoryView) =>
      history.events.filter((event) => event.activityTaskFailedEventAttributes).length === times;
    for (const times of [1, 2]) {
      await HistoryView.when(run.handle, failed(times));
      await temporal.gateway.wakeScan(run.scanId);
    }
    await run.calls.begun('plan', 3);
    await HistoryView.when(run.handle, (history) => history.waits.length === 3);
    await temporal.gateway.wakeScan(run.scanId);
    await run.handle.result();
    save('scan-drain-fails', await HistoryView.of(run.handle));
  },

  async 'scan-recovers'(temporal, save) {
    const run = await temporal.startScan(() => ({
      plan: (call) =>
        call < 4 ? moved(call, { pending: call === 1, stale: call !== 2, more: call < 3 }) : over(),
      recover: (call) => ({ recovered: call === 1 ? '2 lost tasks' : '' }),
    }));
    await HistoryView.when(run.handle, (history) => history.waits.length === 1);
    await temporal.gateway.wakeScan(run.scanId);
    await run.handle.result();
    save('scan-recovers', await HistoryView.of(run.handle));
  },

  async 'scan-tick-fails'(temporal, save) {
    const run = await temporal.startScan(() => ({
      plan(call) {
        if (call === 2) throw ApplicationFailure.nonRetryable('needs migration 7', 'schema_version');
        return call < 4 ? report() : over('CompletedWithErrors');
      },
    }));
    for (const waits of [1, 2, 3]) {
      await HistoryView.when(run.handle, (history) => history.waits.length === waits);
      await temporal.gateway.wakeScan(run.scanId);
    }
    await run.handle.result();
    save('scan-tick-fails', await HistoryView.of(run.handle));
  },
};

/** Only time brings these about. */
const onTimeSkipping: Record<string, Recording> = {
  async 'scan-idle'(temporal, save) {
    const run = await temporal.startScan(() => ({ plan: (call) => (call < 7 ? report() : over()) }));
    await run.handle.result();
    save('scan-idle', await HistoryView.of(run.handle));
  },

  async maintenance(temporal, save) {
    const nothing = { restarted: 0, recovered: 0, purged: 0, retired: 0, unread: false };
    const passes = [
      { ...nothing, restarted: 2, recovered: 1, purged: 7 },
      { ...nothing, unread: true },
    ];
    let made = 0;
    temporal.maintain = async () => {
      made += 1;
      if (made === 3) throw ApplicationFailure.nonRetryable('needs migration 7', 'schema_version');
      return passes[made % 2] ?? nothing;
    };
    temporal.drainAny = async () => ({ batches: 1 });
    await temporal.gateway.ensureMaintenance();
    await temporal.environment.sleep(5.5 * 60_000);
    const handle = temporal.environment.client.workflow.getHandle(maintenanceWorkflowId);
    await HistoryView.when(handle, (history) => history.waits.length === 6);
    save('maintenance', await HistoryView.of(handle));
    await handle.terminate();
  },
};

/** What tells of the machine is taken out; replay does not look at it. */
function saveHistory(name: string, { events }: HistoryView): void {
  const history = JSON.parse(historyToJSON({ events }), (key, value: unknown) => {
    if (key === 'identity') return 'test';
    return key === 'stackTrace' ? '' : value;
  }) as { events: unknown[] };
  const file = join(folder, `${name}.json`);
  writeFileSync(file, `${JSON.stringify(history, null, 1)}\n`);
  console.log(`${file}: ${history.events.length} events`);
}

const wanted = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
for (const [kind, recordings] of [
  ['dev-server', onDevServer],
  ['time-skipping', onTimeSkipping],
] as const) {
  const chosen = Object.entries(recordings).filter(([name]) => wanted.length === 0 || wanted.includes(name));
  if (chosen.length === 0) continue;
  const temporal = await ScriptedTemporal.start(kind);
  try {
    for (const [, recording] of chosen) await recording(temporal, saveHistory);
  } finally {
    await temporal.stop();
  }
}
