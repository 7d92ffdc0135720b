// Helpers outlive neither their worker nor the run: each that was ever seen is asked for at the end.
import { helperOf, type Member, statOf } from './members.ts';

export interface HelperWatch {
  /** Those that are still there. */
  left(): number[];
  stop(): void;
}

const lookEveryMs = 1_000;

export function watchHelpers(members: readonly Member[]): HelperWatch {
  const seen = new Map<number, string>();
  const timer = setInterval(() => {
    for (const worker of members) {
      if (worker.kind !== 'worker') continue;
      const pid = helperOf(worker);
      const stat = pid === undefined ? null : statOf(pid);
      if (pid !== undefined && stat !== null) seen.set(pid, stat.startTicks);
    }
  }, lookEveryMs);
  return {
    left: () => [...seen].filter(([pid, ticks]) => statOf(pid)?.startTicks === ticks).map(([pid]) => pid),
    stop: () => clearInterval(timer),
  };
}
