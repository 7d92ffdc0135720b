// Faults while a step's sources are read, and what they mean for the scan.
import { failureCodes } from '#sonar/contracts/failure-codes.ts';
import type { ScanId } from '#sonar/contracts/ids.ts';
import type { Database } from '#sonar/db/pool.ts';
import { isSonarError, messageOf } from '#sonar/platform/errors.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import { failScanRow, lockScan } from '#sonar/stores/scans.ts';
import { noteStep } from '#sonar/stores/steps.ts';

/**
 * A source that is gone or is not what was accepted fails the scan (true); what may pass by itself is noted on the
 * step and tried again (false); the rest is thrown on.
 */
export async function onSourceFault(
  parts: { database: Database; log: Logger },
  scanId: ScanId,
  step: string,
  error: unknown,
): Promise<boolean> {
  parts.log.error({ operation: 'source_failed', scanId, step, error: messageOf(error) });
  const lost = isSonarError(error, 'not_found') || isSonarError(error, 'invalid');
  if (lost)
    await parts.database.transaction(async (tx) => {
      await lockScan(tx, scanId);
      await failScanRow(tx, scanId, `${failureCodes.sourceLost}: step ${step}: ${messageOf(error)}`);
    });
  else if (isSonarError(error))
    await noteStep(
      parts.database,
      scanId,
      step,
      `its items cannot be read for now: ${messageOf(error).slice(0, 300)}`,
    );
  else throw error;
  return lost;
}
