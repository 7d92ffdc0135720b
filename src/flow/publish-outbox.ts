// One round of the outbox: claimed deliveries go to the broker; only what it confirmed leaves the queue.
import type { DispatchMessage } from '#sonar/contracts/dispatch-message.ts';
import type { ClaimToken, ExecutorId } from '#sonar/contracts/ids.ts';
import type { Database } from '#sonar/db/pool.ts';
import type { Settings } from '#sonar/platform/config.ts';
import { newId } from '#sonar/platform/ids.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import { deriveCredential, type MasterKeys } from '#sonar/platform/signing.ts';
import { backoffMs } from '#sonar/platform/wait.ts';
import {
  claimDeliveries,
  type DeliveryRow,
  finishDeliveries,
  rescheduleDeliveries,
} from '#sonar/stores/outbox.ts';
import { parkTags, returnParked } from '#sonar/stores/parked-tags.ts';
import type { Publisher } from '#sonar/transport/amqp-publisher.ts';

export interface PublishParts {
  database: Database;
  publisher: Publisher;
  keys: MasterKeys;
  executorId: ExecutorId;
  settings: Pick<
    Settings,
    | 'SONAR_PUBLISH_WINDOW'
    | 'SONAR_OUTBOX_LEASE_MS'
    | 'SONAR_BACKOFF_MS'
    | 'SONAR_MAX_BACKOFF_MS'
    | 'SONAR_TAG_PARKED_MS'
  >;
  log: Logger;
}

// Messages carry whole command lines: a window of large ones must not fill memory.
const maxBytesPerRound = 16 * 1024 * 1024;

/** @returns how many deliveries were claimed: 0 means that there is nothing to do. */
export async function publishOutbox(parts: PublishParts): Promise<number> {
  const { database, settings } = parts;
  const token = newId<ClaimToken>();
  const claimed = await claimDeliveries(database, {
    token,
    executorId: parts.executorId,
    leaseMs: settings.SONAR_OUTBOX_LEASE_MS,
    limit: settings.SONAR_PUBLISH_WINDOW,
    maxBytes: maxBytesPerRound,
  });
  if (claimed.length === 0) return 0;
  // An attempt that is no longer current is nobody's work: its event is dropped.
  const stale = claimed.filter((delivery) => !delivery.current);
  if (stale.length > 0)
    await finishDeliveries(
      database,
      token,
      stale.map((delivery) => delivery.event_id),
      false,
    );
  const current = claimed.filter((delivery) => delivery.current);
  const failed: { eventId: string; delayMs: number; error: string }[] = [];
  const messages = current.flatMap((delivery) => {
    const body = messageOf(delivery, parts.keys);
    if (body) return [{ key: delivery.event_id, tag: delivery.tag, body }];
    failed.push(postponed(delivery, `master key "${delivery.key_id}" is not in SONAR_MASTER_KEYS`, settings));
    return [];
  });
  const outcomes = await parts.publisher.publish(messages);
  const byEvent = new Map(current.map((delivery) => [delivery.event_id, delivery]));
  const confirmed = outcomes
    .filter((outcome) => outcome.outcome === 'confirmed')
    .map((outcome) => outcome.key);
  const parked = parts.publisher.parked();
  const returned: DeliveryRow[] = [];
  for (const { key, outcome, reason } of outcomes) {
    const delivery = byEvent.get(key);
    // Another of its tags may take it; in this one's queue nothing will come to be.
    if (outcome === 'returned' && delivery && parked.has(delivery.tag)) returned.push(delivery);
    else if (outcome !== 'confirmed' && delivery)
      failed.push(postponed(delivery, reason ?? outcome, settings));
  }
  if (confirmed.length > 0) await finishDeliveries(database, token, confirmed, true);
  if (returned.length > 0) await giveBack(parts, token, returned, parked);
  if (failed.length > 0) {
    await rescheduleDeliveries(database, token, failed);
    parts.log.warn({ operation: 'outbox_postponed', deliveries: failed.length, reason: failed[0]?.error });
  }
  return claimed.length;
}

/** The tag is parked first: no pass may place on it again what comes back. */
async function giveBack(
  parts: PublishParts,
  token: ClaimToken,
  deliveries: readonly DeliveryRow[],
  reasons: ReadonlyMap<string, string>,
): Promise<void> {
  const { database, settings } = parts;
  const tags = new Map(deliveries.map(({ tag }) => [tag, reasons.get(tag) ?? '']));
  await parkTags(database, tags, settings.SONAR_TAG_PARKED_MS);
  const ids = deliveries.map((delivery) => delivery.event_id);
  const tasks = await returnParked(database, token, ids);
  parts.log.error({ operation: 'tag_parked', tags: Object.fromEntries(tags), tasks });
}

function messageOf(delivery: DeliveryRow, keys: MasterKeys): Buffer | undefined {
  const key = keys.get(delivery.key_id);
  if (!key) return undefined;
  const message: DispatchMessage = {
    ...delivery.payload,
    credential: deriveCredential(key, 'attempt', delivery.attempt_id),
  };
  return Buffer.from(JSON.stringify(message));
}

function postponed(delivery: DeliveryRow, error: string, settings: PublishParts['settings']) {
  const delayMs = backoffMs(delivery.attempts - 1, settings.SONAR_BACKOFF_MS, settings.SONAR_MAX_BACKOFF_MS);
  return { eventId: delivery.event_id, delayMs, error: error.slice(0, 500) };
}
