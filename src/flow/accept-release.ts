// A worker that must go gives back what it cannot finish: Pending at once, for another.
import { failureCodes } from '#sonar/contracts/failure-codes.ts';
import type { Release, ReleaseAnswer } from '#sonar/contracts/worker-api.ts';
import type { Database } from '#sonar/db/pool.ts';
import type { Settings } from '#sonar/platform/config.ts';
import { type AttemptRow, endAttempt, releaseAttempt } from '#sonar/stores/attempts.ts';

// A worker without the program would get the task straight back.
const notFoundDelayMs = 30_000;

/** `superseded` where the attempt is not current any more: there is nothing to give back. */
export async function acceptRelease(
  database: Database,
  attempt: AttemptRow,
  release: Release,
  settings: Pick<Settings, 'SONAR_MAX_RELEASES'>,
): Promise<ReleaseAnswer> {
  const released = await releaseAttempt(database, attempt.attempt_id, {
    reason: release.reason,
    maxReleases: settings.SONAR_MAX_RELEASES,
    failureCode: failureCodes.releasedTooOften,
    delayMs: release.reason === 'command_not_found' ? notFoundDelayMs : 0,
  });
  if (!released) await endAttempt(database, attempt.attempt_id, 'superseded');
  return { disposition: released ? 'accepted' : 'superseded', serverTime: new Date().toISOString() };
}
