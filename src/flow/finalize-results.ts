// Accepted results are read into the inventory: leased rows, files verified, effects and the row's end in one
// transaction that the claim is checked in. Interrupted work is claimed again and changes nothing twice.

import type { ReadSpec } from '#sonar/contracts/definition.ts';
import { failureCodes } from '#sonar/contracts/failure-codes.ts';
import type { ClaimToken, ExecutorId, ScanId } from '#sonar/contracts/ids.ts';
import type { Database } from '#sonar/db/pool.ts';
import { orderKeyOf, partOf } from '#sonar/domain/inventory-fold.ts';
import { recordKey } from '#sonar/domain/records.ts';
import { storableText } from '#sonar/domain/records-storable.ts';
import type { Settings } from '#sonar/platform/config.ts';
import { messageOf, SonarError } from '#sonar/platform/errors.ts';
import { newId } from '#sonar/platform/ids.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import { backoffMs } from '#sonar/platform/wait.ts';
import { readerFor } from '#sonar/readers/registry.ts';
import { type OutputFileRow, outputFilesOf } from '#sonar/stores/attempts.ts';
import { findRevision } from '#sonar/stores/definitions.ts';
import {
  claimFinalizations,
  countClaims,
  type FinalizationRow,
  finishFinalization,
  lockClaims,
  poisonFinalization,
  postponeFinalization,
  renewClaim,
} from '#sonar/stores/finalizations.ts';
import type { NewObservation } from '#sonar/stores/inventory.ts';
import type { ObjectStore } from '#sonar/transport/object-store.ts';
import { readVerified } from './read-output.ts';
import { upsertInventory } from './upsert-inventory.ts';

export interface FinalizeParts {
  database: Database;
  objects: ObjectStore;
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

// More observations in memory cost more of it; fewer cost more transactions.
const observationsPerTransaction = 2_000;
const maxWarnings = 20;

/** Claims and works off one batch. @returns the scans it finished something of; undefined: nothing was due. */
export async function finalizeResults(parts: FinalizeParts): Promise<Set<ScanId> | undefined> {
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
  const renewal = setInterval(() => {
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

interface Read {
  row: FinalizationRow;
  /** What is not written yet. */
  observations: NewObservation[];
  records: number;
  good: number;
  bad: number;
  warnings: string[];
}

/** Small results commit together; when that fails each is tried alone, so that one cannot hold up the others. */
async function finalizeBatch(
  parts: FinalizeParts,
  token: ClaimToken,
  rows: FinalizationRow[],
): Promise<void> {
  const reads: Read[] = [];
  for (const row of rows) {
    try {
      reads.push(await readResult(parts, token, row));
    } catch (error) {
      await giveBack(parts, token, row, error);
    }
  }
  if (reads.length === 0) return;
  try {
    await commit(parts, token, reads);
  } catch (error) {
    if (reads.length === 1) {
      await giveBack(parts, token, (reads[0] as Read).row, error);
      return;
    }
    for (const read of reads) {
      try {
        await commit(parts, token, [read]);
      } catch (alone) {
        await giveBack(parts, token, read.row, alone);
      }
    }
  }
}

function commit(parts: FinalizeParts, token: ClaimToken, reads: Read[]): Promise<void> {
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

async function readResult(parts: FinalizeParts, token: ClaimToken, row: FinalizationRow): Promise<Read> {
  const revision = await findRevision(
    parts.database,
    row.workspace_id,
    row.definition_name,
    row.definition_revision,
  );
  const step = revision?.compiled.steps.find((candidate) => candidate.name === row.step);
  if (!step)
    throw new SonarError(
      'internal',
      `definition ${row.definition_name} has no step ${row.step} in revision ${row.definition_revision}`,
    );
  const read: Read = { row, observations: [], records: 0, good: 0, bad: 0, warnings: [] };
  for (const output of step.outputs) {
    if (!output.read) continue;
    const files = await outputFilesOf(parts.database, row.attempt_id, output.name);
    for (const [position, file] of files.entries())
      await readFile(parts, token, read, output.read, file, position);
  }
  if (read.bad > 0 && read.good === 0)
    throw new SonarError(
      'invalid',
      `none of ${read.bad} records could be read; the first: ${read.warnings[0] ?? 'unknown'}`,
    );
  return read;
}

async function readFile(
  parts: FinalizeParts,
  token: ClaimToken,
  read: Read,
  spec: ReadSpec,
  file: OutputFileRow,
  position: number,
): Promise<void> {
  for await (const event of readerFor(spec).read(await readVerified(parts.objects, file), spec)) {
    if (event.kind === 'warning') {
      warn(read, `${file.path}: ${event.message}`);
      continue;
    }
    if (event.kind === 'bad') {
      read.bad += 1;
      warn(read, `${file.path}: ${event.reason}: ${event.sample}`);
      continue;
    }
    read.good += 1;
    for (const [index, draft] of event.records.entries()) {
      const keyed = recordKey(draft);
      if (!keyed.ok) {
        read.bad += 1;
        warn(read, `${file.path}: ${keyed.reason}`);
        continue;
      }
      read.records += 1;
      const part = partOf(event.kind, index);
      read.observations.push({
        attemptId: read.row.attempt_id,
        output: file.output,
        file: file.path,
        row: event.ordinal,
        part,
        workspaceId: read.row.workspace_id,
        scanId: read.row.scan_id,
        type: keyed.type,
        key: keyed.key,
        orderKey: orderKeyOf(
          read.row.accepted_sequence,
          read.row.task_id,
          file.output,
          position,
          event.ordinal,
          part,
        ),
        observedAt: read.row.accepted_at,
        fields: keyed.fields,
        sets: keyed.sets,
        partial: file.partial,
      });
    }
    if (read.observations.length >= observationsPerTransaction) await flush(parts, token, read);
  }
}

/** A large file goes in by batches; each proves in its own transaction that the claim still holds. */
async function flush(parts: FinalizeParts, token: ClaimToken, read: Read): Promise<void> {
  await parts.database.transaction(async (tx) => {
    if ((await renewClaim(tx, token, parts.settings.SONAR_FINALIZATION_LEASE_MS)) === 0)
      throw new SonarError('lease_lost', `the claim of finalization ${read.row.finalization_id} was lost`);
    await upsertInventory(tx, read.observations);
  });
  read.observations = [];
}

function warn(read: Read, message: string): void {
  if (read.warnings.length < maxWarnings) read.warnings.push(storableText(message, 500));
}

async function giveBack(
  parts: FinalizeParts,
  token: ClaimToken,
  row: FinalizationRow,
  error: unknown,
): Promise<void> {
  const { settings } = parts;
  const reason = storableText(messageOf(error), 1_000);
  const last = row.attempts >= settings.SONAR_FINALIZATION_ATTEMPTS;
  parts.log.error({
    operation: last ? 'finalization_poisoned' : 'finalization_failed',
    finalizationId: row.finalization_id,
    attempts: row.attempts,
    error: reason,
  });
  if (last) {
    await poisonFinalization(parts.database, token, {
      finalizationId: row.finalization_id,
      error: reason,
      failureCode: failureCodes.poisoned,
    });
    return;
  }
  const delayMs = backoffMs(row.attempts - 1, settings.SONAR_BACKOFF_MS, settings.SONAR_MAX_BACKOFF_MS);
  await postponeFinalization(parts.database, token, {
    finalizationId: row.finalization_id,
    delayMs,
    error: reason,
  });
}
