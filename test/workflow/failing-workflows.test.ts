// Workflows whose tasks fail again and again are ended and made anew: they hold no state. On the real server, which
// counts the failures; ten of them take it minutes, so the bound is lower here.
import { maintenanceWorkflowId } from '#sonar/contracts/names.ts';
import { bundleOfMutant, type Mutation } from '../replay/mutant.ts';
import { ScriptedTemporal } from './scripted-temporal.ts';

const broken = "throw new TypeError('a build that was deployed by mistake');";
const title = { name: 'night watch', definition: 'loopback-survey' };

async function withBroken(
  mutation: Mutation,
  work: (temporal: ScriptedTemporal) => Promise<void>,
): Promise<void> {
  const temporal = await ScriptedTemporal.start('dev-server', await bundleOfMutant(mutation));
  try {
    await work(temporal);
  } finally {
    await temporal.stop();
  }
}

/** @returns the run, once its workflow task has failed so often. */
async function failing(temporal: ScriptedTemporal, workflowId: string, failures: number): Promise<string> {
  const handle = temporal.environment.client.workflow.getHandle(workflowId);
  for (;;) {
    const { raw, runId } = await handle.describe();
    if ((raw.pendingWorkflowTask?.attempt ?? 0) > failures) return runId;
  }
}

test("a scan's workflow is terminated and started anew, once it has failed so often and not before", () =>
  withBroken(
    { file: 'scan.ts', find: 'const report = await reconciler().plan({ scanId });', replace: broken },
    async (temporal) => {
      const run = await temporal.startScan(() => ({ plan: () => Promise.reject(new Error('never asked')) }));
      const { workflowId } = run.handle;
      const runId = await failing(temporal, workflowId, 1);
      const scan = { scanId: run.scanId, ...title };
      expect(await temporal.gateway.restartIfFailing(scan, 1_000)).toBe(false);
      expect(await temporal.gateway.restartIfFailing(scan, 2)).toBe(true);
      const { client } = temporal.environment;
      expect((await client.workflow.getHandle(workflowId, runId).describe()).status.name).toBe('TERMINATED');
      const fresh = await client.workflow.getHandle(workflowId).describe();
      expect(fresh.status.name).toBe('RUNNING');
      expect(fresh.runId).not.toBe(runId);
    },
  ));

test('the maintenance workflow comes back by the next reconciler that ensures it', () =>
  withBroken(
    { file: 'maintenance.ts', find: 'const { unread, summary } = await pass();', replace: broken },
    async (temporal) => {
      expect(await temporal.gateway.ensureMaintenance()).toBe('running');
      const runId = await failing(temporal, maintenanceWorkflowId, 1);
      expect(await temporal.gateway.ensureMaintenance()).toBe('running');
      // Several find out at once.
      const answers = await Promise.all([1, 2, 3].map(() => temporal.gateway.ensureMaintenance(2)));
      expect(answers).toContain('restarted');
      const { client } = temporal.environment;
      const first = await client.workflow.getHandle(maintenanceWorkflowId, runId).describe();
      expect(first.status.name).toBe('TERMINATED');
      expect((await client.workflow.getHandle(maintenanceWorkflowId).describe()).status.name).toBe('RUNNING');
    },
  ));
