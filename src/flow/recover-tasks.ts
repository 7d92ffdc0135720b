// One recovery pass over all scans: tasks whose command nobody will finish, or whose message nobody will start, are
// taken back from their attempts, so that others may have them.
import { failureCodes } from '#sonar/contracts/failure-codes.ts';
import type { ClaimToken, ExecutorId, IncarnationId, ScanId } from '#sonar/contracts/ids.ts';
import type { RecoveryRule } from '#sonar/contracts/states.ts';
import type { Database, Db } from '#sonar/db/pool.ts';
import {
  type DispatchedAttempt,
  type FleetView,
  type FleetWorker,
  fleetLoss,
  type Holder,
  holderRule,
  intakeGapMs,
  intakeIsOpen,
  isLostForGood,
  recoveryRule,
  type StalenessBounds,
  staleTags,
} from '#sonar/domain/staleness.ts';
import type { Settings } from '#sonar/platform/config.ts';
import { newId } from '#sonar/platform/ids.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import { requestPass } from '#sonar/stores/placement.ts';
import {
  claimRecovery,
  doubtfulHolders,
  findHold,
  type HolderRow,
  type HoldRow,
  lockStale,
  markHold,
  readFleet,
  readIntake,
  readSuspects,
  recoveryIsWanted,
  releaseRecovery,
  type SuspectRow,
  type Takeback,
  takeBack,
  waitingTags,
} from '#sonar/stores/recovery.ts';
import { endAbandonedAttempts } from '#sonar/stores/workers.ts';

export interface RecoverParts {
  database: Database;
  executorId: ExecutorId;
  settings: Settings;
  log: Logger;
}

export interface RecoveryResult {
  /** Tasks taken back, by scan; `failed` are those among them that were lost for good. */
  scans: Map<ScanId, { tasks: number; failed: number }>;
  /** Cancelled attempts that count no longer. */
  ended: number;
}

// A pass that meets more goes on in the next; a batch is one transaction.
const tasksPerBatch = 500;
const batchesPerPass = 40;

/** Whether a tick should ask for a pass. */
export const scanMayBeStale = (
  database: Db,
  scanId: ScanId,
  settings: BoundSettings & Pick<Settings, 'SONAR_RECOVERY_EVERY_MS'>,
): Promise<boolean> =>
  recoveryIsWanted(database, scanId, { ...boundsOf(settings), everyMs: settings.SONAR_RECOVERY_EVERY_MS });

/** Why nobody is judged absent at present, for operators. */
export const recoveryHold = (database: Db): Promise<HoldRow | undefined> => findHold(database);

/** Undefined: somebody else is at it, or has just been; the claim serves all who ask. */
export async function recoverTasks(parts: RecoverParts): Promise<RecoveryResult | undefined> {
  const { database, settings } = parts;
  const token = newId<ClaimToken>();
  const claimed = await claimRecovery(database, {
    token,
    executorId: parts.executorId,
    leaseMs: settings.SONAR_RECOVERY_LEASE_MS,
    everyMs: settings.SONAR_RECOVERY_EVERY_MS,
  });
  if (!claimed) return undefined;
  let passed = false;
  try {
    const result = await pass(parts);
    passed = true;
    return result;
  } finally {
    await releaseRecovery(database, token, passed);
  }
}

type BoundSettings = Pick<
  Settings,
  'SONAR_ALIVE_WITHIN_MS' | 'SONAR_PULSE_EVERY_MS' | 'SONAR_STALE_AFTER_MS'
>;

const boundsOf = (settings: BoundSettings): StalenessBounds => ({
  aliveWithinMs: settings.SONAR_ALIVE_WITHIN_MS,
  intakeGapMs: intakeGapMs(settings.SONAR_ALIVE_WITHIN_MS, settings.SONAR_PULSE_EVERY_MS),
  staleAfterMs: settings.SONAR_STALE_AFTER_MS,
});

async function pass(parts: RecoverParts): Promise<RecoveryResult> {
  const { database, settings } = parts;
  const bounds = boundsOf(settings);
  const fleet = await fleetOf(database, settings);
  const open = await intakeOpen(database, bounds);
  const held = open && (await hold(parts, fleet, bounds));
  const absenceCounts = open && !held;
  const waiting = await waitingTags(database, bounds.staleAfterMs);
  const viewOf = (counts: boolean): FleetView => ({
    staleTags: staleTags(waiting, fleet, counts, bounds),
    absenceCounts: counts,
  });
  const view = viewOf(absenceCounts);
  const holders = await doubtfulHolders(database, bounds.aliveWithinMs);
  const by = (rule: RecoveryRule): IncarnationId[] =>
    holders
      .filter((row) => holderRule(holderOf(row), absenceCounts, bounds) === rule)
      .map((row) => row.incarnation_id);
  const suspects = {
    orphaned: by('worker_replaced'),
    absent: by('worker_absent'),
    tags: [...view.staleTags.keys()],
    staleAfterMs: bounds.staleAfterMs,
  };
  const result: RecoveryResult = { scans: new Map(), ended: 0 };
  for (let batch = 0; batch < batchesPerPass; batch += 1) {
    const taken = await recoverBatch(parts, suspects, { view, unheard: viewOf(false) }, bounds, result);
    if (taken < tasksPerBatch) break;
  }
  // Of every scan: one that goes on after a retry has cancelled attempts too.
  result.ended = await endAbandonedAttempts(database, null, {
    graceMs: settings.SONAR_CANCEL_GRACE_MS,
    absentMs: bounds.aliveWithinMs,
    gapMs: bounds.intakeGapMs,
    intakeMs: bounds.staleAfterMs,
  });
  if (result.scans.size > 0) await requestPass(database);
  return result;
}

async function intakeOpen(db: Db, bounds: StalenessBounds): Promise<boolean> {
  const intake = await readIntake(db);
  return intakeIsOpen({ openMs: intake.open_ms, silentMs: intake.silent_ms }, bounds);
}

async function fleetOf(database: Db, settings: Settings): Promise<FleetWorker[]> {
  // Who fell silent earlier is in no window whose hold still lasts.
  const heardWithinMs =
    settings.SONAR_ALIVE_WITHIN_MS + settings.SONAR_FLEET_HOLD_MS + settings.SONAR_FLEET_HOLD_WINDOW_MS;
  return (await readFleet(database, heardWithinMs)).map((row) => ({
    tags: row.tags,
    draining: row.draining,
    freePulses: row.free_pulses,
    silentMs: row.silent_ms,
    registeredMs: row.registered_ms,
  }));
}

/** Most of a fleet does not die within a minute: that is a network, and the commands behind it go on. */
async function hold(
  parts: RecoverParts,
  fleet: readonly FleetWorker[],
  bounds: StalenessBounds,
): Promise<boolean> {
  const { database, settings, log } = parts;
  const loss = fleetLoss(fleet, bounds, {
    workers: settings.SONAR_FLEET_HOLD_WORKERS,
    windowMs: settings.SONAR_FLEET_HOLD_WINDOW_MS,
    holdMs: settings.SONAR_FLEET_HOLD_MS,
  });
  const note =
    loss &&
    `recovery of absent workers' tasks is on hold: ${loss.lost} of ${loss.of} workers fell silent at once`;
  const { before, held } = await markHold(
    database,
    loss && note !== undefined ? { endsInMs: loss.endsInMs, note } : null,
  );
  if (held && !before) log.error({ operation: 'fleet_vanished', ...loss }, note);
  if (before && !held) log.warn({ operation: 'fleet_hold_ended' }, 'absent workers are judged again');
  return held;
}

async function recoverBatch(
  parts: RecoverParts,
  suspects: Parameters<typeof lockStale>[1],
  views: { view: FleetView; unheard: FleetView },
  bounds: StalenessBounds,
  result: RecoveryResult,
): Promise<number> {
  const { database, settings, log } = parts;
  const judged = await database.transaction(async (tx) => {
    const locked = await lockStale(tx, suspects, tasksPerBatch);
    if (locked.length === 0) return [];
    const rows = await readSuspects(tx, locked);
    // Asked after the silence was read: of a database or a host that stood still meanwhile nobody is absent.
    const view = (await intakeOpen(tx, bounds)) ? views.view : views.unheard;
    const stale = rows.flatMap((row) => {
      const rule = recoveryRule(attemptOf(row), view, bounds);
      return rule === undefined
        ? []
        : [{ row, takeback: takebackOf(row, rule, settings.SONAR_MAX_RECOVERIES) }];
    });
    if (stale.length > 0)
      await takeBack(
        tx,
        failureCodes.recoveredTooOften,
        stale.map(({ takeback }) => takeback),
      );
    return stale;
  });
  for (const { row, takeback } of judged) {
    const known = result.scans.get(row.scan_id) ?? { tasks: 0, failed: 0 };
    const failed = takeback.failure === null ? 0 : 1;
    result.scans.set(row.scan_id, { tasks: known.tasks + 1, failed: known.failed + failed });
    log.warn({
      operation: failed > 0 ? 'task_lost_for_good' : 'task_recovered',
      rule: takeback.rule,
      scanId: row.scan_id,
      step: row.step,
      taskId: row.task_id,
      attemptId: row.attempt_id,
      worker: row.worker_name,
    });
  }
  return judged.length;
}

const holderOf = (row: HolderRow): Holder | null =>
  row.known ? { replacedMs: row.replaced_ms, silentMs: row.silent_ms } : null;

const attemptOf = (row: SuspectRow): DispatchedAttempt => ({
  status: row.status,
  tag: row.tag,
  confirmedMs: row.confirmed_ms,
  startedMs: row.started_ms,
  omittedPulses: row.omitted_pulses,
  holder: row.holder_known ? { replacedMs: row.replaced_ms, silentMs: row.silent_ms ?? 0 } : null,
});

function takebackOf(row: SuspectRow, rule: RecoveryRule, maxRecoveries: number): Takeback {
  const failure = isLostForGood(row, maxRecoveries)
    ? `lost ${row.recoveries + 1} times after a start without a result, last by worker "${row.worker_name ?? '?'}" (${rule}); the command may end its machines`
    : null;
  return { taskId: row.task_id, attemptId: row.attempt_id, rule, failure };
}
