import { ApplicationFailure } from '@temporalio/common';
import { maintenanceWorkflowId } from '#sonar/contracts/names.ts';
import { HistoryView } from './history-view.ts';
import { useTimeSkipping } from './scripted-temporal.ts';

const temporal = useTimeSkipping();
const minuteMs = 60_000;
const pass = { restarted: 0, recovered: 0, purged: 0, retired: 0, unread: false };

/** Starts it as every reconciler does; it is ended with its test. */
async function maintenance() {
  await temporal.current.gateway.ensureMaintenance();
  const handle = temporal.current.environment.client.workflow.getHandle(maintenanceWorkflowId);
  return {
    handle,
    [Symbol.asyncDispose]: async () => {
      await handle.terminate().catch(() => undefined);
    },
  };
}

test('a pass every minute says what it did; what nobody reads is drained', async () => {
  const passes = [
    { ...pass, restarted: 2, recovered: 3, purged: 7 },
    { ...pass, unread: true },
  ];
  let made = 0;
  let drained = 0;
  temporal.current.maintain = async () => passes[made++] ?? pass;
  temporal.current.drainAny = async () => {
    drained += 1;
    throw new Error('no object store');
  };
  await using running = await maintenance();
  await temporal.current.gateway.ensureMaintenance();
  await temporal.current.environment.sleep(3.5 * minuteMs);
  const history = await HistoryView.when(running.handle, (view) => view.waits.length === 4);
  expect(history.waits.map((wait) => wait.ms)).toEqual(Array.from({ length: 4 }, () => minuteMs));
  expect(history.waits.map((wait) => wait.summary)).toEqual([
    'started 2 scan workflow(s); recovered 3 lost task(s)',
    'nothing to mend',
    'nothing to mend',
    'nothing to mend',
  ]);
  expect(drained).toBe(1);
  expect(history.workflowTaskFailures).toBe(0);
});

test('a pass that fails for good is shown, and the next one tries again', async () => {
  let made = 0;
  temporal.current.maintain = async () => {
    made += 1;
    if (made === 1) throw ApplicationFailure.nonRetryable('needs migration 7', 'schema_version');
    return pass;
  };
  await using running = await maintenance();
  await temporal.current.environment.sleep(1.5 * minuteMs);
  const history = await HistoryView.when(running.handle, (view) => view.waits.length === 2);
  expect(history.waits.map((wait) => wait.summary)).toEqual([
    'maintain failed: schema_version: needs migration 7',
    'nothing to mend',
  ]);
});

test('it goes on for ever in runs of 2,000 events', async () => {
  let made = 0;
  temporal.current.maintain = async () => {
    made += 1;
    return { ...pass, unread: true };
  };
  temporal.current.drainAny = async () => ({ batches: 1 });
  await using running = await maintenance();
  const { runId } = await running.handle.describe();
  await temporal.current.environment.sleep(150 * minuteMs);
  expect(made).toBeGreaterThan(145);
  const chain = await temporal.current.chainOf(running);
  expect(chain.length).toBeGreaterThan(1);
  expect((await running.handle.describe()).runId).not.toBe(runId);
  expect(chain[0]?.length).toBeLessThan(2_100);
});
