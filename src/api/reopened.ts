// A scan that a retry or a repair has opened again: its workflow has to know.
import { messageOf } from '#sonar/platform/errors.ts';
import type { ScanRow } from '#sonar/stores/scans.ts';
import type { ApiParts } from './api-parts.ts';
import { scanView } from './views.ts';

/** The commit comes first: a workflow that has ended is started again and finds the scan open. */
export async function startReopened(parts: ApiParts, scan: ScanRow): Promise<void> {
  await parts.temporal
    .wakeOrStartScan({ scanId: scan.scan_id, name: scan.name, definition: scan.definition_name })
    .catch((error: unknown) =>
      parts.log.warn({
        operation: 'scan_workflow_not_started',
        scanId: scan.scan_id,
        error: messageOf(error),
      }),
    );
}

export async function retried(parts: ApiParts, { scan, retried: tasks }: { scan: ScanRow; retried: number }) {
  await startReopened(parts, scan);
  return { scan: scanView(scan), retried: tasks };
}
