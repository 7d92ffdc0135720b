// Water-fill: which pending work goes to which tag, within the budgets of tags, fleet and steps.

/** In turns this small, no step takes a pool that another ready step could share. */
export const turnSize = 8;

export interface PlaceableStep {
  scanId: string;
  step: string;
  tags: readonly string[];
  /** How much is pending; the caller may cap it at what could ever be placed in one pass. */
  pending: number;
  /** What `maxConcurrent` leaves; Infinity without one. */
  concurrencyLeft: number;
  /** Number of the last turn that it has had whole: the smaller, the sooner its next one. */
  lastTurn: number;
  /** What it was given in earlier passes of the turn that it is in: a turn may end in a later pass. */
  turnTaken: number;
}

export interface Capacity {
  /** What each served tag can still take; a tag that no eligible worker has is absent. */
  byTag: ReadonlyMap<string, number>;
  /** What the fleet can still take, each physical worker counted once. */
  fleet: number;
}

export interface Allocation {
  scanId: string;
  step: string;
  tag: string;
  tasks: number;
}

/** Where a step stands after the pass. */
export interface Turn {
  scanId: string;
  step: string;
  lastTurn: number;
  turnTaken: number;
}

export interface Placement {
  allocations: Allocation[];
  /** Of those that were given something. */
  turns: Turn[];
  /** Number of the last whole turn of anybody. */
  lastTurn: number;
  /** Steps with pending work for whose tags there is no eligible worker at all. */
  starved: { scanId: string; step: string }[];
}

/**
 * Round-robin over scans, within a scan over its steps, in turns of {@link turnSize}, until budgets or
 * pending work end. Of a step's tags the one with the most room takes the turn; ties go to the first.
 * Whoever has waited longest since its last whole turn comes first, and a turn that a budget cuts short goes on in
 * the next pass; so a scan waits for no more than a turn of each other, however little comes free at a time.
 * Nothing is ever given beyond a budget.
 * @param lastTurn number of the last whole turn before this pass
 */
export function fill(steps: readonly PlaceableStep[], capacity: Capacity, lastTurn = 0): Placement {
  const roomOfTag = new Map(capacity.byTag);
  let fleet = capacity.fleet;
  const starved: Placement['starved'] = [];
  const given = new Map<string, Allocation>();
  const turns = new Map<PlaceableStep, Turn>();
  const queues = new Map<string, { step: PlaceableStep; pending: number; left: number }[]>();
  for (const step of inOrderOfTurns(steps)) {
    if (step.pending <= 0) continue;
    if (!step.tags.some((tag) => capacity.byTag.has(tag))) {
      starved.push({ scanId: step.scanId, step: step.step });
      continue;
    }
    const left = Math.min(step.pending, step.concurrencyLeft);
    if (left <= 0) continue;
    const queue = queues.get(step.scanId) ?? [];
    queue.push({ step, pending: step.pending, left });
    queues.set(step.scanId, queue);
  }
  while (fleet > 0 && queues.size > 0) {
    for (const [scanId, queue] of queues) {
      const turn = queue.shift();
      const tag = turn && roomiest(turn.step.tags, roomOfTag);
      if (turn && tag !== undefined && fleet > 0) {
        const { step } = turn;
        const room = roomOfTag.get(tag) as number;
        const before = turns.get(step) ?? { ...step, scanId };
        const tasks = Math.min(turnSize - before.turnTaken, turn.left, room, fleet);
        add(given, { scanId, step: step.step, tag, tasks });
        roomOfTag.set(tag, room - tasks);
        fleet -= tasks;
        turn.left -= tasks;
        turn.pending -= tasks;
        const taken = before.turnTaken + tasks;
        const whole = taken === turnSize || turn.pending === 0;
        turns.set(step, {
          scanId,
          step: step.step,
          lastTurn: whole ? ++lastTurn : before.lastTurn,
          turnTaken: whole ? 0 : taken,
        });
        // Another of its tags may have room for the rest of the turn.
        if (turn.left > 0) queue[whole ? 'push' : 'unshift'](turn);
      }
      // Without a tag that has room the step is out of this pass: rooms only shrink.
      if (queue.length === 0) queues.delete(scanId);
    }
  }
  return { allocations: [...given.values()], turns: [...turns.values()], lastTurn, starved };
}

/** Scans by the last turn of any of their steps, and the steps of each by their own. */
function inOrderOfTurns(steps: readonly PlaceableStep[]): PlaceableStep[] {
  const ofScan = new Map<string, number>();
  for (const { scanId, lastTurn } of steps) ofScan.set(scanId, Math.max(ofScan.get(scanId) ?? 0, lastTurn));
  return steps.toSorted(
    (a, b) =>
      (ofScan.get(a.scanId) ?? 0) - (ofScan.get(b.scanId) ?? 0) ||
      (a.scanId === b.scanId ? a.lastTurn - b.lastTurn : 0),
  );
}

function roomiest(tags: readonly string[], room: ReadonlyMap<string, number>): string | undefined {
  let best: string | undefined;
  for (const tag of tags) {
    const here = room.get(tag) ?? 0;
    if (here > 0 && (best === undefined || here > (room.get(best) as number))) best = tag;
  }
  return best;
}

function add(given: Map<string, Allocation>, allocation: Allocation): void {
  const key = JSON.stringify([allocation.scanId, allocation.step, allocation.tag]);
  const known = given.get(key);
  if (known) known.tasks += allocation.tasks;
  else given.set(key, allocation);
}

export interface EligibleWorker {
  incarnationId: string;
  /** By which it can be given work now. */
  tags: readonly string[];
  /** Which it has too, but which take nothing at the moment. */
  parked: readonly string[];
  slots: number;
}

/**
 * A step without the workers that lack its program: of its tags those that others serve, of its room no more than
 * theirs. `nobody` where workers have its tags, parked ones too, and each of them lacks it; no worker at all is not
 * that, and one that has it and can be given nothing for a while is somebody.
 */
export function withoutLacking(
  step: PlaceableStep,
  inFlight: number,
  workers: readonly EligibleWorker[],
  lacking: ReadonlySet<string>,
  multiple: number,
): PlaceableStep | 'nobody' {
  const ofStep = (tag: string): boolean => step.tags.includes(tag);
  const known = workers.filter(({ tags, parked }) => tags.some(ofStep) || parked.some(ofStep));
  const able = known.filter((worker) => !lacking.has(worker.incarnationId));
  if (able.length === known.length) return step;
  if (able.length === 0) return 'nobody';
  const having = able.filter(({ tags }) => tags.some(ofStep));
  const slots = having.reduce((sum, worker) => sum + worker.slots, 0);
  return {
    ...step,
    tags: step.tags.filter((tag) => having.some((worker) => worker.tags.includes(tag))),
    concurrencyLeft: Math.min(step.concurrencyLeft, Math.max(0, multiple * slots - inFlight)),
  };
}

/** Of a fleet: each tag's slots and all slots, times the multiple, less what is in flight. */
export function capacityOf(
  workers: readonly Pick<EligibleWorker, 'tags' | 'slots'>[],
  inFlight: { byTag: ReadonlyMap<string, number>; total: number },
  multiple: number,
): Capacity {
  const slots = new Map<string, number>();
  let total = 0;
  for (const worker of workers) {
    total += worker.slots;
    for (const tag of new Set(worker.tags)) slots.set(tag, (slots.get(tag) ?? 0) + worker.slots);
  }
  const byTag = new Map<string, number>();
  for (const [tag, count] of slots)
    byTag.set(tag, Math.max(0, multiple * count - (inFlight.byTag.get(tag) ?? 0)));
  return { byTag, fleet: Math.max(0, multiple * total - inFlight.total) };
}
