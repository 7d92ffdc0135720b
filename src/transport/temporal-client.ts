// What the program asks of Temporal from outside a workflow.
import {
  Client,
  Connection,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
} from '@temporalio/client';
import {
  defineSearchAttributeKey,
  TypedSearchAttributes,
  WorkflowIdConflictPolicy,
  WorkflowIdReusePolicy,
} from '@temporalio/common';
import type { ScanId } from '#sonar/contracts/ids.ts';
import {
  maintenanceWorkflowId,
  scanWorkflowId,
  searchAttributes,
  taskQueues,
  wakeSignal,
  workflowTypes,
} from '#sonar/contracts/names.ts';
import { messageOf, SonarError } from '#sonar/platform/errors.ts';

export interface ScanTitle {
  scanId: ScanId;
  name: string;
  definition: string;
}

export interface TemporalGateway {
  /** Starts the scan's workflow, or leaves the one that runs. */
  startScan(scan: ScanTitle): Promise<void>;
  /** `false`: no such workflow runs. */
  wakeScan(scanId: ScanId): Promise<boolean>;
  /** Commits come first; a workflow that has ended is started again and finds them. */
  wakeOrStartScan(scan: ScanTitle): Promise<void>;
  /** The scan's workflow holds no state, so one that fails again and again is ended and made anew. */
  restartIfFailing(scan: ScanTitle, failures: number): Promise<boolean>;
  /**
   * Removes the histories of a scan's workflow, as far as the server knows and lets them be removed; the other ones
   * go by the namespace's retention. @throws SonarError `unreachable`.
   */
  forgetScan(scanId: ScanId): Promise<void>;
  /** Starts the workflow that looks after the others, or leaves the one that runs; one that keeps failing is made anew. */
  ensureMaintenance(failures?: number): Promise<'running' | 'restarted'>;
  check(): Promise<void>;
  close(): Promise<void>;
}

const rpcTimeoutMs = 10_000;
// A deployment under way fails a task or two; ten in a row end by themselves only with other code.
export const failuresBeforeRestart = 10;

export async function connectTemporal(options: {
  address: string;
  namespace: string;
}): Promise<TemporalGateway> {
  const connection = await Connection.connect({
    address: options.address,
    connectTimeout: rpcTimeoutMs,
  }).catch((error: unknown) => {
    throw new SonarError(
      'unreachable',
      `Temporal at ${options.address} cannot be reached: ${messageOf(error)}`,
      { cause: error },
    );
  });
  const client = new Client({ connection, namespace: options.namespace });
  const within = <Result>(call: () => Promise<Result>): Promise<Result> =>
    client.withDeadline(Date.now() + rpcTimeoutMs, call).catch((error: unknown) => {
      throw expected(error)
        ? error
        : new SonarError('unreachable', `Temporal did not do it: ${messageOf(error)}`, { cause: error });
    });
  return {
    startScan: (scan) =>
      within(async () => {
        await client.workflow.start(workflowTypes.scan, scanOptions(scan));
      }),
    wakeScan: (scanId) =>
      within(() => client.workflow.getHandle(scanWorkflowId(scanId)).signal(wakeSignal)).then(
        () => true,
        (error: unknown) => {
          if (error instanceof WorkflowNotFoundError) return false;
          throw error;
        },
      ),
    wakeOrStartScan: (scan) =>
      within(async () => {
        await client.workflow.signalWithStart(workflowTypes.scan, {
          ...scanOptions(scan),
          signal: wakeSignal,
        });
      }),
    forgetScan: (scanId) => within(() => forgetScan(client, options.namespace, scanId)),
    restartIfFailing: (scan, failures) =>
      within(async () => {
        const ended = await endIfFailing(client, scanWorkflowId(scan.scanId), failures);
        if (ended) await client.workflow.start(workflowTypes.scan, scanOptions(scan));
        return ended;
      }),
    ensureMaintenance: (failures = failuresBeforeRestart) =>
      within(async () => {
        const ended = await endIfFailing(client, maintenanceWorkflowId, failures);
        await client.workflow.start(workflowTypes.maintenance, {
          workflowId: maintenanceWorkflowId,
          taskQueue: taskQueues.reconciler,
          args: [],
          workflowIdConflictPolicy: WorkflowIdConflictPolicy.USE_EXISTING,
          workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
          staticSummary:
            'Starts the workflows of scans that lost theirs, recovers lost tasks, clears what is old',
        });
        return ended ? 'restarted' : 'running';
      }),
    check: () => within(() => connection.workflowService.getSystemInfo({})).then(() => undefined),
    close: () => connection.close(),
  };
}

function scanOptions(scan: ScanTitle) {
  return {
    workflowId: scanWorkflowId(scan.scanId),
    taskQueue: taskQueues.reconciler,
    args: [{ scanId: scan.scanId }] as [{ scanId: ScanId }],
    workflowIdConflictPolicy: WorkflowIdConflictPolicy.USE_EXISTING,
    workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
    staticSummary: `Scan ${oneLine(scan.name)} of ${scan.definition}`,
    typedSearchAttributes: new TypedSearchAttributes([
      { key: defineSearchAttributeKey(searchAttributes.status, 'KEYWORD'), value: 'Running' },
      { key: defineSearchAttributeKey(searchAttributes.definition, 'KEYWORD'), value: scan.definition },
      { key: defineSearchAttributeKey(searchAttributes.name, 'TEXT'), value: scan.name },
    ]),
  };
}

/** Its workflow task fails again and again: it is terminated, since no workflow of Sonar holds a state. */
async function endIfFailing(client: Client, workflowId: string, failures: number): Promise<boolean> {
  const handle = client.workflow.getHandle(workflowId);
  const description = await handle.describe().catch((error: unknown) => {
    if (error instanceof WorkflowNotFoundError) return undefined;
    throw error;
  });
  if (description?.status.name !== 'RUNNING') return false;
  const attempt = description.raw.pendingWorkflowTask?.attempt ?? 0;
  if (attempt < failures) return false;
  // By its run: what another reconciler has started meanwhile is not to be ended.
  await client.workflow
    .getHandle(workflowId, description.runId)
    .terminate(`its workflow task failed ${attempt} times; a fresh workflow goes on from PostgreSQL`)
    .catch((error: unknown) => {
      // Another reconciler was first.
      if (!(error instanceof WorkflowNotFoundError)) throw error;
    });
  return true;
}

const maxForgotten = 1_000;

async function forgetScan(client: Client, namespace: string, scanId: ScanId): Promise<void> {
  const workflowId = scanWorkflowId(scanId);
  let seen = 0;
  for await (const { runId } of client.workflow.list({ query: `WorkflowId = '${workflowId}'` })) {
    await client.workflowService
      .deleteWorkflowExecution({ namespace, workflowExecution: { workflowId, runId } })
      .catch((error: unknown) => {
        // gRPC's NOT_FOUND, PERMISSION_DENIED and UNIMPLEMENTED: gone, or not to be removed by us.
        if (![5, 7, 12].includes((error as { code?: number }).code ?? -1)) throw error;
      });
    seen += 1;
    if (seen >= maxForgotten) return;
  }
}

const expected = (error: unknown): boolean =>
  error instanceof WorkflowNotFoundError || error instanceof WorkflowExecutionAlreadyStartedError;

const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ').slice(0, 150);
