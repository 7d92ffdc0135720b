// A message that died in the broker gives its task back: nobody will ever run that attempt.
import { uuidPattern } from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import { returnUndelivered } from '#sonar/stores/outbox.ts';
import type { DeadLetter } from '#sonar/transport/amqp-dead-letters.ts';

// A worker that refused the message would refuse the next one too; somebody may mend it meanwhile.
const refusedDelayMs = 30_000;

/** Published → Pending where the attempt is still the task's; a letter of any other changes nothing. */
export async function returnDeadLetter(
  parts: { database: Db; log: Logger },
  letter: Pick<DeadLetter, 'messageId' | 'tag' | 'reason'>,
): Promise<void> {
  const { database, log } = parts;
  const known = letter.messageId !== null && uuidPattern.test(letter.messageId);
  const delayMs = letter.reason === 'expired' ? 0 : refusedDelayMs;
  const returned = known ? await returnUndelivered(database, letter.messageId as string, delayMs) : false;
  log.warn({
    operation: 'dead_letter',
    eventId: letter.messageId,
    tag: letter.tag,
    reason: letter.reason,
    returned,
  });
}
