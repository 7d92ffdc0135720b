// The one start/stop contract of every long-lived part.

export interface Service {
  readonly name: string;
  /** Resolves when the part serves. */
  start(): Promise<void>;
  /** Resolves when nothing of it runs any more; bounded; may be called twice. */
  stop(): Promise<void>;
}

/** Starts in order; when one fails, those already started are stopped in reverse and its fault is thrown. */
export async function startAll(services: readonly Service[]): Promise<void> {
  const started: Service[] = [];
  try {
    for (const service of services) {
      await service.start();
      started.push(service);
    }
  } catch (error) {
    await stopAll(started);
    throw error;
  }
}

/** Stops in reverse order of start; every part gets its stop, and the first fault is thrown at the end. */
export async function stopAll(services: readonly Service[]): Promise<void> {
  const faults: unknown[] = [];
  for (const service of services.toReversed()) {
    try {
      await service.stop();
    } catch (error) {
      faults.push(error);
    }
  }
  if (faults.length > 0) throw faults[0];
}
