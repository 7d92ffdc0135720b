// A worker's pulse: what it is, what it has in hand; the answer says what of that is to end.
import type { Pulse, PulseAnswer } from '#sonar/contracts/worker-api.ts';
import type { Database } from '#sonar/db/pool.ts';
import { endOmittedAttempts, findIncarnation, judgeAttempts, recordPulse } from '#sonar/stores/workers.ts';

/** The pulse's signature was verified by the caller. An old or repeated pulse changes nothing and is answered. */
export async function acceptPulse(database: Database, pulse: Pulse): Promise<PulseAnswer> {
  const taken = await recordPulse(database, pulse);
  if (taken > 0) await endOmittedAttempts(database, pulse);
  const replaced = taken === 0 && ((await findIncarnation(database, pulse.incarnationId))?.replaced ?? true);
  const judged = pulse.attempts.length > 0 ? await judgeAttempts(database, pulse.attempts) : [];
  return {
    cancel: judged.filter((attempt) => attempt.cancel).map((attempt) => attempt.attempt_id),
    superseded: judged.filter((attempt) => attempt.superseded).map((attempt) => attempt.attempt_id),
    replaced,
    serverTime: new Date().toISOString(),
  };
}
