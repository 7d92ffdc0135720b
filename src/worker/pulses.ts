// The worker's sign of life, and the way in which Sonar tells it what to end.
import { messageVersion, type PulseAnswer, type Registration } from '#sonar/contracts/worker-api.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import { backoffMs, jittered, pause } from '#sonar/platform/wait.ts';
import type { ApiClient } from './api-client.ts';

export interface PulseState {
  freeSlots: number;
  draining: boolean;
  attempts: string[];
}

export interface PulseEvents {
  /** What is true now; composed with the sequence in one step, so that no later pulse can know less. */
  state(): PulseState;
  answered(answer: PulseAnswer): void;
  /** Sonar will take no pulse of this incarnation any more. */
  refused(status: number, detail: string): void;
}

export interface Pulses {
  /** Sequence of the last pulse composed; 0 before the first. */
  sequence(): number;
  /** Runs until the signal aborts. */
  run(answer: { secret: string; pulseEveryMs: number }, signal: AbortSignal): Promise<void>;
  /** Sends the next pulse without waiting out the interval. */
  now(): void;
}

const firstRetryMs = 500;
/** A slow answer is better than none, however short the interval. */
const minTimeoutMs = 5_000;

export function createPulses(
  registration: Registration,
  api: ApiClient,
  log: Logger,
  events: PulseEvents,
): Pulses {
  const { name, incarnationId, location, image, tags, slots } = registration;
  let sequence = 0;
  let hurry = new AbortController();

  return {
    sequence: () => sequence,
    now() {
      hurry.abort();
    },
    async run({ secret, pulseEveryMs }, signal) {
      let failures = 0;
      while (!signal.aborted) {
        const composedAt = performance.now();
        hurry = new AbortController();
        sequence += 1;
        const { freeSlots, draining, attempts } = events.state();
        const outcome = await api.pulse(
          secret,
          {
            v: messageVersion,
            name,
            incarnationId,
            sequence,
            location,
            image,
            tags,
            slots,
            freeSlots,
            draining,
            attempts,
          },
          Math.max(pulseEveryMs, minTimeoutMs),
        );
        if (signal.aborted) return;
        if (outcome.kind === 'answer') {
          failures = 0;
          events.answered(outcome.value);
        } else if (outcome.kind === 'refused') {
          events.refused(outcome.status, outcome.detail);
          return;
        } else {
          failures += 1;
          log.warn({ operation: 'worker_pulse_failed', reason: outcome.reason, failures }, 'pulse failed');
        }
        const waitMs =
          failures === 0
            ? pulseEveryMs - (performance.now() - composedAt)
            : jittered(
                Math.min(pulseEveryMs, backoffMs(failures - 1, firstRetryMs, pulseEveryMs)),
                Math.random(),
              );
        await pause(Math.max(0, waitMs), AbortSignal.any([signal, hurry.signal]));
      }
    },
  };
}
