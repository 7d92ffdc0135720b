/** `4.2 s`, `1:05`, `2:03:09`: short, and never wider than it must be. */
export function formatDuration(ms: number): string {
  if (ms < 10_000) return `${(Math.max(0, ms) / 1000).toFixed(1)} s`;
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const two = (value: number): string => String(value).padStart(2, '0');
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}:${two(seconds % 60)}`;
  return `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(seconds % 60)}`;
}

/** A rate a second with about two telling digits. */
export function formatRate(perSecond: number): string {
  return perSecond >= 10 ? String(Math.round(perSecond)) : perSecond.toFixed(1);
}

/** `1 task`, `2 tasks`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** An ISO time as the reader's eye wants it: to the second, still UTC. */
export function formatTime(iso: string | null): string | null {
  return iso === null ? null : `${iso.slice(0, 19).replace('T', ' ')}Z`;
}

/** The rate over the last `windowMs` of samples of a growing count. */
export class RateMeter {
  readonly #windowMs: number;
  readonly #samples: { atMs: number; count: number }[] = [];

  constructor(windowMs = 30_000) {
    this.#windowMs = windowMs;
  }

  add(count: number, atMs: number): void {
    this.#samples.push({ atMs, count });
    while (this.#samples.length > 2 && (this.#samples[0] as { atMs: number }).atMs < atMs - this.#windowMs)
      this.#samples.shift();
  }

  /** Null before two samples that lie apart. A retry takes tasks back: then the rate is 0, not negative. */
  perSecond(): number | null {
    const first = this.#samples[0];
    const last = this.#samples.at(-1);
    if (first === undefined || last === undefined || last.atMs <= first.atMs) return null;
    return Math.max(0, ((last.count - first.count) * 1000) / (last.atMs - first.atMs));
  }
}
