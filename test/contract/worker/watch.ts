// Waiting for what the scripted parts see, without sleeping: a condition is looked at after every change.
import { readFileSync } from 'node:fs';

export interface Watch {
  changed(): void;
  /** Resolves with the condition's first truthy value; fails with `what` after `boundMs`. */
  until<T>(what: string, condition: () => T | undefined | null | false, boundMs?: number): Promise<T>;
}

export function createWatch(): Watch {
  const waiting = new Set<() => void>();
  return {
    changed() {
      for (const look of waiting) look();
    },
    until<T>(what: string, condition: () => T | undefined | null | false, boundMs = 20_000) {
      return new Promise<T>((resolve, reject) => {
        const timer = setTimeout(
          () => finish(() => reject(new Error(`not within ${boundMs} ms: ${what}`))),
          boundMs,
        );
        const finish = (settle: () => void) => {
          clearTimeout(timer);
          waiting.delete(look);
          settle();
        };
        const look = () => {
          const value = condition();
          if (value) finish(() => resolve(value));
        };
        waiting.add(look);
        look();
      });
    },
  };
}

/** For what only the system knows (a process that ends): looks every few milliseconds, up to the bound. */
export async function poll(
  what: string,
  condition: () => boolean | Promise<boolean>,
  boundMs = 15_000,
): Promise<void> {
  const deadline = performance.now() + boundMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`not within ${boundMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** What a script wrote into a file with `echo $$`; 0 before. */
export function numberIn(path: string): number {
  try {
    return Number(readFileSync(path, 'utf8'));
  } catch {
    return 0;
  }
}
