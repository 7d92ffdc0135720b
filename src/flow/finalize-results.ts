// Accepted results are read into the inventory: leased rows, files verified, effects and the row's end in one
// transaction that the claim is checked in. Interrupted work is claimed again and changes nothing twice.

import { failureCodes } from '#sonar/contracts/failure-codes.ts';
import type { ClaimToken, ExecutorId, ScanId } from '#sonar/contracts/ids.ts';
import type { Database } from '#sonar/db/pool.ts';
import { storableText } from '#sonar/domain/records-storable.ts';
import type { Settings } from '#sonar/platform/config.ts';
import { isSonarError, messageOf, SonarError } from '#sonar/platform/errors.ts';
import { newId } from '#sonar/platform/ids.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import { backoffMs } from '#sonar/platform/wait.ts';
import {
  claimFinalizations,
  countClaims,
  type FaultSample,
  type FinalizationRow,
  finishFinalization,
  lockClaims,
  poisonFinalization,
  postponeFinalization,
  renewClaim,
} from '#sonar/stores/finalizations.ts';
import type { Revisions } from '#sonar/stores/revisions.ts';
import type { ObjectStore } from '#sonar/transport/object-store.ts';
import { beginReading, type RecordReading, readRecords } from './read-records.ts';
import { bytesAtOnce, upsertInventory } from './upsert-inventory.ts';

export interface FinalizeParts {
  database: Database;
  objects: ObjectStore;
  revisions: Revisions;
  executorId: ExecutorId;
  settings: Pick<
    Settings,
    | 'SONAR_FINALIZATION_LEASE_MS'
    | 'SONAR_FINALIZATION_ATTEMPTS'
    | 'SONAR_FINALIZATION_CLAIMS'
    | 'SONAR_FINALIZATION_ROWS'
    | 'SONAR_FINALIZATION_BYTES'
    | 'SONAR_BACKOFF_MS'
    | 'SONAR_MAX_BACKOFF_MS'
  >;
  log: Logger;
}

// Far beyond any batch that goes on: the largest outputs commit by parts.
const maxBatchMs = 15 * 60_000;

/**
 * Claims and works off one batch. The claim is kept up until `signal` aborts or a bound is reached: what hangs must
 * not hold its rows for ever.
 * @returns the scans it finished something of; undefined: nothing was due.
 */
export async function finalizeResults(
  parts: FinalizeParts,
  signal?: AbortSignal,
): Promise<Set<ScanId> | undefined> {
  const { settings } = parts;
  const token = newId<ClaimToken>();
  const rows = await parts.database.transaction(async (tx) => {
    await lockClaims(tx);
    if ((await countClaims(tx)) >= settings.SONAR_FINALIZATION_CLAIMS) return [];
    return claimFinalizations(tx, {
      token,
      executorId: parts.executorId,
      leaseMs: settings.SONAR_FINALIZATION_LEASE_MS,
      maxRows: settings.SONAR_FINALIZATION_ROWS,
      maxBytes: settings.SONAR_FINALIZATION_BYTES,
    });
  });
  if (rows.length === 0) return undefined;
  const claimedAt = performance.now();
  const renewal = setInterval(() => {
    if (signal?.aborted || performance.now() - claimedAt > maxBatchMs) return;
    renewClaim(parts.database, token, settings.SONAR_FINALIZATION_LEASE_MS).catch((error: unknown) =>
      parts.log.warn({ operation: 'finalization_renewal_failed', error: messageOf(error) }),
    );
  }, settings.SONAR_FINALIZATION_LEASE_MS / 3);
  try {
    await finalizeBatch(parts, token, rows);
  } finally {
    clearInterval(renewal);
  }
  return new Set(rows.map((row) => row.scan_id));
}

async function finalizeBatch(
  parts: FinalizeParts,
  token: ClaimToken,
  rows: FinalizationRow[],
): Promise<void> {
  let reads: RecordReading[] = [];
  for (const row of rows) {
    if (row.attempts > parts.settings.SONAR_FINALIZATION_ATTEMPTS) {
      // Counted at the claim: its claimants have died over it, so nobody reads it again.
      await poison(parts, token, row, 'every process that read it has died or lost its claim', null);
      continue;
    }
    const reading = beginReading(row);
    try {
      await readRecords(parts, reading, () => flush(parts, token, reading));
    } catch (error) {
      await giveBack(parts, token, reading, error);
      continue;
    }
    if (reads.reduce((bytes, read) => bytes + read.bytes, reading.bytes) > bytesAtOnce) {
      await commitTogether(parts, token, reads);
      reads = [];
    }
    reads.push(reading);
  }
  await commitTogether(parts, token, reads);
}

/** Small results commit together; when that fails each is tried alone, so that one cannot hold up the others. */
async function commitTogether(
  parts: FinalizeParts,
  token: ClaimToken,
  reads: RecordReading[],
): Promise<void> {
  if (reads.length === 0) return;
  try {
    await commit(parts, token, reads);
  } catch (error) {
    if (reads.length === 1) {
      await giveBack(parts, token, reads[0] as RecordReading, error);
      return;
    }
    for (const read of reads) {
      try {
        await commit(parts, token, [read]);
      } catch (alone) {
        await giveBack(parts, token, read, alone);
      }
    }
  }
}

function commit(parts: FinalizeParts, token: ClaimToken, reads: RecordReading[]): Promise<void> {
  return parts.database.transaction(async (tx) => {
    for (const read of reads) {
      const finished = await finishFinalization(
        tx,
        { token, executorId: parts.executorId },
        {
          finalizationId: read.row.finalization_id,
          records: read.records,
          badRecords: read.bad,
          warnings: read.warnings,
          failureCode: failureCodes.poisoned,
        },
      );
      if (!finished)
        throw new SonarError('lease_lost', `the claim of finalization ${read.row.finalization_id} was lost`);
    }
    await upsertInventory(
      tx,
      reads.flatMap((read) => read.observations),
    );
  });
}

/**
 * A large file goes in by batches; each proves in its own transaction that the claim still holds this result. That it
 * holds others proves nothing: this one may have been closed since, and its scan be gone.
 */
async function flush(parts: FinalizeParts, token: ClaimToken, read: RecordReading): Promise<void> {
  await parts.database.transaction(async (tx) => {
    const held = await renewClaim(tx, token, parts.settings.SONAR_FINALIZATION_LEASE_MS);
    if (!held.has(read.row.finalization_id))
      throw new SonarError('lease_lost', `the claim of finalization ${read.row.finalization_id} was lost`);
    await upsertInventory(tx, read.observations);
  });
}

/** An outage is nobody's fault and counts no attempt; what cannot be read after so many tries is poisoned. */
async function giveBack(
  parts: FinalizeParts,
  token: ClaimToken,
  { row, sample }: RecordReading,
  error: unknown,
): Promise<void> {
  const { settings } = parts;
  const reason = storableText(messageOf(error), 1_000);
  const outage = isSonarError(error, 'unreachable');
  if (row.attempts >= settings.SONAR_FINALIZATION_ATTEMPTS && !outage)
    return poison(parts, token, row, reason, sample);
  parts.log.error({
    operation: 'finalization_failed',
    finalizationId: row.finalization_id,
    attempts: row.attempts,
    error: reason,
  });
  const delayMs = backoffMs(row.attempts - 1, settings.SONAR_BACKOFF_MS, settings.SONAR_MAX_BACKOFF_MS);
  await postponeFinalization(parts.database, token, {
    finalizationId: row.finalization_id,
    delayMs,
    error: reason,
    sample,
    countsAttempt: !outage,
  });
}

async function poison(
  parts: FinalizeParts,
  token: ClaimToken,
  row: FinalizationRow,
  reason: string,
  sample: FaultSample | null,
): Promise<void> {
  parts.log.error({
    operation: 'finalization_poisoned',
    finalizationId: row.finalization_id,
    attempts: row.attempts,
    error: reason,
  });
  await poisonFinalization(parts.database, token, {
    finalizationId: row.finalization_id,
    error: reason,
    sample,
    failureCode: failureCodes.poisoned,
  });
}
