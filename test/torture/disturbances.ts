// When a worker was not able to do or to say what it should: the only times at which another may run its commands.

export interface Disturbance {
  worker: string;
  why: string;
  /** Seconds of the machine's uptime; open at first. */
  from: number;
  until: number;
}

export class Disturbances {
  readonly #all: Disturbance[] = [];

  begin(worker: string, why: string, from: number): Disturbance {
    const disturbance = { worker, why, from, until: Number.POSITIVE_INFINITY };
    this.#all.push(disturbance);
    return disturbance;
  }

  /** Whether the worker was disturbed at some moment between the two. */
  between(worker: string, from: number, until: number): boolean {
    return this.#all.some((one) => one.worker === worker && one.from <= until && one.until >= from);
  }
}
