import { Client, Connection } from '@temporalio/client';
import type { ScanId } from '#sonar/contracts/ids.ts';
import { scanWorkflowId } from '#sonar/contracts/names.ts';
import type { StackEnvironment } from '#sonar/stack/stack.ts';

// A chain longer than this is itself the fault.
const maxRuns = 100;

/** How many runs a scan's workflow took by continue-as-new, and the events of all of them. */
export async function historyChain(
  env: StackEnvironment,
  scanId: string,
): Promise<{ runs: number; events: number }> {
  const connection = await Connection.connect({ address: env.SONAR_TEMPORAL_ADDRESS });
  try {
    const client = new Client({ connection, namespace: env.SONAR_TEMPORAL_NAMESPACE });
    const workflowId = scanWorkflowId(scanId as ScanId);
    let runId: string | undefined =
      (await client.workflow.getHandle(workflowId).describe()).raw.workflowExecutionInfo?.firstRunId ??
      undefined;
    let runs = 0;
    let events = 0;
    while (runId !== undefined && runId !== '' && runs < maxRuns) {
      const history = await client.workflow.getHandle(workflowId, runId).fetchHistory();
      runs += 1;
      events += history.events?.length ?? 0;
      runId =
        history.events?.at(-1)?.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId ??
        undefined;
    }
    return { runs, events };
  } finally {
    await connection.close();
  }
}
