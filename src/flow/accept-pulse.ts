// A worker's pulse: what it is, what it has in hand; the answer says what of that is to end.
import type { Pulse, PulseAnswer } from '#sonar/contracts/worker-api.ts';
import type { Database } from '#sonar/db/pool.ts';
import { intakeGapMs } from '#sonar/domain/staleness.ts';
import type { Settings } from '#sonar/platform/config.ts';
import {
  endOmittedAttempts,
  findIncarnation,
  judgeAttempts,
  noteOmittedAttempts,
  recordPulse,
  touchIntake,
} from '#sonar/stores/workers.ts';
import type { ScanWaker } from './wake-scans.ts';

// Often enough that no gap is seen where there is none; one row must not be written at every pulse of a fleet.
const touchedEveryMs = 2_000;
const touchesInAGap = 4;

/** The pulse's signature was verified by the caller. An old or repeated pulse changes nothing and is answered. */
export async function acceptPulse(
  parts: {
    database: Database;
    waker: Pick<ScanWaker, 'wake'>;
    settings: Pick<Settings, 'SONAR_ALIVE_WITHIN_MS' | 'SONAR_PULSE_EVERY_MS'>;
  },
  pulse: Pulse,
): Promise<PulseAnswer> {
  const { database } = parts;
  const taken = await recordPulse(database, pulse);
  if (taken > 0) {
    const gapMs = intakeGapMs(parts.settings.SONAR_ALIVE_WITHIN_MS, parts.settings.SONAR_PULSE_EVERY_MS);
    await touchIntake(database, Math.min(touchedEveryMs, Math.floor(gapMs / touchesInAGap)), gapMs);
    await noteOmittedAttempts(database, pulse);
    // The end of a cancelled scan may have waited for just that.
    for (const scanId of await endOmittedAttempts(database, pulse)) parts.waker.wake(scanId);
  }
  const replaced = taken === 0 && ((await findIncarnation(database, pulse.incarnationId))?.replaced ?? true);
  const judged = pulse.attempts.length > 0 ? await judgeAttempts(database, pulse.attempts) : [];
  return {
    cancel: judged.filter((attempt) => attempt.cancel).map((attempt) => attempt.attempt_id),
    superseded: judged.filter((attempt) => attempt.superseded).map((attempt) => attempt.attempt_id),
    replaced,
    serverTime: new Date().toISOString(),
  };
}
