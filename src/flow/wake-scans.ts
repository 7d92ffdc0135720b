// Wakes of scan workflows, coalesced: at most one a period for each scan, so history follows ticks, not tasks.
import type { ScanId } from '#sonar/contracts/ids.ts';
import { messageOf } from '#sonar/platform/errors.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import type { Service } from '#sonar/platform/service.ts';
import type { TemporalGateway } from '#sonar/transport/temporal-client.ts';

export interface ScanWaker extends Service {
  /** Never waits and never fails: a wake that is lost costs the time to the next tick. */
  wake(scanId: ScanId): void;
}

// A scan that is woken again and again goes on by itself between wakes (placement and drains have their own
// loops), so its wakes thin out: its history must not grow with its length. A quiet period starts anew.
const wakesAtFullPace = 20;
const slowest = 3;

/** The first wake goes at once; those within a period after it become one at its end. */
export function createScanWaker(options: {
  temporal: Pick<TemporalGateway, 'wakeScan'>;
  everyMs: number;
  log: Logger;
}): ScanWaker {
  // A scan is here while it may not be woken; `wanted`: somebody wants it when the period is over.
  const periods = new Map<ScanId, { wanted: boolean; timer: NodeJS.Timeout }>();
  const sending = new Set<Promise<void>>();

  const send = (scanId: ScanId): void => {
    const sent = options.temporal
      .wakeScan(scanId)
      .then(() => undefined)
      .catch((error: unknown) =>
        options.log.warn({ operation: 'wake_lost', scanId, error: messageOf(error) }),
      )
      .finally(() => sending.delete(sent));
    sending.add(sent);
  };

  const sendAndRest = (scanId: ScanId, inARow: number): void => {
    send(scanId);
    const pace = Math.min(slowest, 1 + Math.floor(inARow / wakesAtFullPace));
    const timer = setTimeout(() => {
      const wanted = periods.get(scanId)?.wanted === true;
      periods.delete(scanId);
      if (wanted) sendAndRest(scanId, inARow + 1);
    }, pace * options.everyMs);
    periods.set(scanId, { wanted: false, timer });
  };

  return {
    name: 'scan waker',
    wake(scanId) {
      const period = periods.get(scanId);
      if (period) period.wanted = true;
      else sendAndRest(scanId, 1);
    },
    start: () => Promise.resolve(),
    async stop() {
      for (const [scanId, { wanted, timer }] of periods) {
        clearTimeout(timer);
        // What was promised for the end of the period is sent now: nobody will be there then.
        if (wanted) send(scanId);
      }
      periods.clear();
      await Promise.all(sending);
    },
  };
}
