// Every name that crosses a process: environment, queues, exchanges, signals, workflow ids, headers.
// No import of a library: workflows read this file too.
import type { AttemptId, ScanId, TaskId } from './ids.ts';

export const environment = {
  databaseUrl: 'SONAR_DATABASE_URL',
  amqpUrl: 'SONAR_AMQP_URL',
  temporalAddress: 'SONAR_TEMPORAL_ADDRESS',
  temporalNamespace: 'SONAR_TEMPORAL_NAMESPACE',
  s3Endpoint: 'SONAR_S3_ENDPOINT',
  s3Bucket: 'SONAR_S3_BUCKET',
  apiUrl: 'SONAR_API_URL',
  token: 'SONAR_TOKEN',
  masterKeys: 'SONAR_MASTER_KEYS',
} as const;

export const taskQueues = { reconciler: 'sonar.reconciler', finalizer: 'sonar.finalizer' } as const;

export const workflowTypes = { scan: 'scan', maintenance: 'maintenance' } as const;
export const scanWorkflowId = (scanId: ScanId): string => `scan/${scanId}`;
export const maintenanceWorkflowId = 'maintenance';
export const wakeSignal = 'wake';

export const searchAttributes = {
  status: 'SonarScanStatus',
  definition: 'SonarDefinition',
  name: 'SonarScanName',
} as const;

export const dispatchExchange = 'sonar.dispatch';
export const deadLetterExchange = 'sonar.dead';
export const deadLetterQueue = 'sonar.dead';
export const tagQueue = (tag: string): string => `sonar.tag.${tag}`;
/** What a tag, a step or a definition may be called; safe in queue names, paths and URLs. */
export const namePattern = /^[a-z][a-z0-9_-]{0,62}$/;

/**
 * Inputs that no step names: the file of an item, the file or folder of a batch, and what belongs to the
 * definition. No name of an author begins with `_`.
 */
export const itemInput = '_item';
export const batchInput = '_batch';
export const fileInput = (name: string): string => `_file-${name}`;
export const inputNamePattern = /^(?:_item|_batch|(?:_file-)?[a-z][a-z0-9_-]{0,62})$/;

/** Stable over all attempts of a task: the identity that effects are keyed by. */
export const dispatchKey = (scanId: ScanId, taskId: TaskId, step: string): string =>
  `${scanId}/${taskId}/${step}`;

/** All objects of a scan begin with it, and no others. */
export const scanObjects = (workspaceId: string, scanId: ScanId): string => `${workspaceId}/scans/${scanId}/`;

/** The attempt and the hash are in the key, so no upload can overwrite an accepted object. */
export const outputObjectKey = (
  workspaceId: string,
  scanId: ScanId,
  attemptId: AttemptId,
  sha256: string,
): string => `${scanObjects(workspaceId, scanId)}${attemptId}/${sha256}`;

/** What a person uploads: of each upload its own, so that a broken one is never in the way of a whole one. */
export const uploadedObjectKey = (workspaceId: string, sha256: string, upload: string): string =>
  `${workspaceId}/files/${sha256}/${upload}`;

/** Made by Sonar itself for the tasks of a scan: batches and merged inputs. The same bytes are the same object. */
export const inputObjectKey = (workspaceId: string, scanId: ScanId, sha256: string): string =>
  `${scanObjects(workspaceId, scanId)}inputs/${sha256}`;

/** Headers of the Standard Webhooks scheme, on every signed callback and pulse. */
export const signatureHeaders = {
  id: 'webhook-id',
  timestamp: 'webhook-timestamp',
  signature: 'webhook-signature',
} as const;
