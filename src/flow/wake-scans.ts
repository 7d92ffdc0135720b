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

/** The first wake goes at once; those within `everyMs` after it become one at the end of that time. */
export function createScanWaker(options: {
  temporal: Pick<TemporalGateway, 'wakeScan'>;
  everyMs: number;
  log: Logger;
}): ScanWaker {
  // A scan is here while it may not be woken; true: somebody wants it when the time is over.
  const quiet = new Map<ScanId, boolean>();
  const timers = new Map<ScanId, NodeJS.Timeout>();
  const sending = new Set<Promise<void>>();

  const send = (scanId: ScanId): void => {
    quiet.set(scanId, false);
    timers.set(
      scanId,
      setTimeout(() => {
        timers.delete(scanId);
        const wanted = quiet.get(scanId) === true;
        quiet.delete(scanId);
        if (wanted) send(scanId);
      }, options.everyMs),
    );
    const sent = options.temporal
      .wakeScan(scanId)
      .then(() => undefined)
      .catch((error: unknown) =>
        options.log.warn({ operation: 'wake_lost', scanId, error: messageOf(error) }),
      )
      .finally(() => sending.delete(sent));
    sending.add(sent);
  };

  return {
    name: 'scan waker',
    wake(scanId) {
      if (quiet.has(scanId)) quiet.set(scanId, true);
      else send(scanId);
    },
    start: () => Promise.resolve(),
    async stop() {
      for (const timer of timers.values()) clearTimeout(timer);
      timers.clear();
      // What was promised for the end of the period is sent now: nobody will be there then.
      for (const [scanId, wanted] of quiet) if (wanted) send(scanId);
      for (const timer of timers.values()) clearTimeout(timer);
      await Promise.all(sending);
    },
  };
}
