// What may happen, in any order. Each command does it to the world and to the model; the database must then agree.
import fc from 'fast-check';
import { defaultWorkspace } from '#sonar/contracts/ids.ts';
import { applyDefinition } from '#sonar/flow/apply-definition.ts';
import { cancelScan } from '#sonar/flow/cancel-scan.ts';
import { pauseScan } from '#sonar/flow/pause-scan.ts';
import { retryTasks } from '#sonar/flow/retry-tasks.ts';
import { isSonarError } from '#sonar/platform/errors.ts';
import { attemptOf as storedAttempt } from '../fixtures/laboratory.ts';
import { timePasses } from '../fixtures/passing-time.ts';
import { adoptTasks, expectAgreement, hostOf } from './agree.ts';
import { answered, endAbandoned, pulsed, recovered, released, started } from './attempt-rules.ts';
import { attemptOf, type Incarnation, isScanOver, liveTasks, type Model } from './model.ts';
import { adoptPlacement } from './placement-rules.ts';
import { planned, retried, settled } from './planning-rules.ts';
import { bounds, clockSteps, definitionText } from './times.ts';
import { freshDelivery, type PublishOutcome, publishRound, readAll, startOf, type World } from './world.ts';

export type Command = fc.AsyncCommand<Model, World>;

type Act = (model: Model, world: World) => Promise<void>;

/** A command that may always come; what it finds nothing to do for, it leaves. */
function command(name: string, act: Act): Command {
  return {
    check: () => true,
    toString: () => name,
    run: async (model, world) => {
      await act(model, world);
      await expectAgreement(model, world);
    },
  };
}

export const plan: Act = async (model, world) => {
  const wanted = planned(model);
  await world.lab.plan(world.scan);
  if (model.scan.status === 'Cancelling') endAbandoned(model);
  await adoptTasks(model, world, wanted);
};

export const place: Act = async (model, world) => {
  await world.lab.place();
  await adoptPlacement(model, world);
};

export const publish =
  (outcome: PublishOutcome): Act =>
  async (model, world) => {
    const sent = await publishRound(world, outcome);
    const current = [...model.outbox].filter((id) => {
      const { task } = attemptOf(model, id);
      return task.attempt === id && task.status === 'Published';
    });
    expect(sent.toSorted()).toEqual(current.toSorted());
    model.outbox = outcome === 'confirmed' ? new Set() : new Set(current);
    if (outcome !== 'confirmed') return;
    for (const id of sent) {
      const attempt = attemptOf(model, id);
      attempt.confirmedAt = model.now;
      model.queues.set(attempt.tag, [...(model.queues.get(attempt.tag) ?? []), id]);
    }
  };

/** A message reaches a worker, which asks whether to run it; a copy of it may stay behind. */
export const deliver =
  (pick: number, copied: boolean): Act =>
  async (model, world) => {
    const waiting = [...model.fleet.values()].flatMap((worker) =>
      worker.tags.flatMap((tag) => ((model.queues.get(tag) ?? []).length > 0 ? [{ worker, tag }] : [])),
    );
    const chosen = waiting[pick % Math.max(1, waiting.length)];
    if (!chosen) return;
    const [id, ...rest] = model.queues.get(chosen.tag) as [string, ...string[]];
    model.queues.set(chosen.tag, copied ? [...rest, id] : rest);
    await ask(model, world, chosen.worker, id, freshDelivery());
  };

async function ask(
  model: Model,
  world: World,
  worker: Incarnation,
  id: string,
  delivery: string,
): Promise<void> {
  const attempt = attemptOf(model, id);
  const expected = started(model, attempt, worker, delivery);
  expect(await startOf(world, attempt, worker, delivery)).toBe(expected);
  if (expected === 'run') worker.hand.add(id);
}

/** A worker repeats its question: the answer got lost. */
const askAgain =
  (pick: number): Act =>
  async (model, world) => {
    const known = [...model.attempts.values()].filter(
      (attempt) => attempt.holder !== null && attempt.delivery !== null,
    );
    const attempt = known[pick % Math.max(1, known.length)];
    if (!attempt?.holder || attempt.delivery === null) return;
    const expected = started(model, attempt, attempt.holder, attempt.delivery);
    expect(await startOf(world, attempt, attempt.holder, attempt.delivery)).toBe(expected);
  };

export type Ending = 'empty' | 'found' | 'garbage' | 'failed' | 'failed with rows';

/** A command ends somewhere, and its result is sent; the worker may miss the answer and keep it. */
export const finish =
  (pick: number, ending: Ending, answerLost: boolean): Act =>
  async (model, world) => {
    const running = [...model.fleet.values(), ...model.ghosts].flatMap((worker) =>
      [...worker.hand].map((id) => ({ worker, id })),
    );
    const chosen = running[pick % Math.max(1, running.length)];
    if (!chosen) return;
    const { worker, id } = chosen;
    const attempt = attemptOf(model, id);
    const rows = attempt.task.step !== 'each' ? 'none' : rowsOf[ending];
    const outcome = ending.startsWith('failed') ? 'failed' : 'completed';
    const content = rows === 'good' ? `{"host":"${hostOf(id)}"}\n` : 'no record at all\n';
    const stored = await storedAttempt(world.lab.database, id);
    const result =
      world.sent.get(id) ??
      (await world.lab.result(
        stored,
        worker.worker,
        rows === 'none' || attempt.ended ? {} : { found: { 'found.jsonl': content } },
        {
          outcome,
          exitCode: outcome === 'failed' ? 1 : 0,
        },
      ));
    const first = !world.sent.has(id);
    world.sent.set(id, result);
    const given = {
      digest: result.digest,
      outcome: result.outcome === 'failed' ? 'failed' : 'completed',
      rows: first && result.manifest.length > 0 ? rows : 'none',
    } as const;
    const expected = answered(model, attempt, given);
    expect(await world.lab.accept(stored, result)).toBe(expected);
    if (!answerLost) worker.hand.delete(id);
  };

const rowsOf = {
  empty: 'none',
  found: 'good',
  garbage: 'bad',
  failed: 'none',
  'failed with rows': 'good',
} as const;

/** Sent once more, as it was or with another digest, by whoever still has it. */
const repeat =
  (pick: number, other: boolean): Act =>
  async (model, world) => {
    const sent = [...world.sent];
    const chosen = sent[pick % Math.max(1, sent.length)];
    if (!chosen) return;
    const [id, result] = chosen;
    const stored = await storedAttempt(world.lab.database, id);
    const attempt = attemptOf(model, id);
    // A second result of an attempt that is still current would be its first accepted one.
    if (attempt.digest === null && attempt.task.attempt === id) return;
    const given = other
      ? { ...result, digest: result.digest.replace(/^./, (digit) => (digit === '0' ? '1' : '0')) }
      : result;
    const expected = answered(model, attempt, { digest: given.digest, outcome: 'completed', rows: 'none' });
    expect(await world.lab.accept(stored, given)).toBe(expected);
  };

const release =
  (pick: number): Act =>
  async (model, world) => {
    const running = [...model.fleet.values()].flatMap((worker) =>
      [...worker.hand].map((id) => ({ worker, id })),
    );
    const chosen = running[pick % Math.max(1, running.length)];
    if (!chosen) return;
    const attempt = attemptOf(model, chosen.id);
    // A worker sends no release after a result.
    if (world.sent.has(chosen.id)) return;
    const expected = released(attempt);
    const answer = await world.lab.release(
      await storedAttempt(world.lab.database, chosen.id),
      chosen.worker.worker,
    );
    expect(answer.disposition).toBe(expected);
    chosen.worker.hand.delete(chosen.id);
  };

/** A worker pulses, and ends what it is told to; it may have forgotten one of its commands. */
async function pulse(
  model: Model,
  worker: Incarnation,
  shape: { forgets: boolean; draining: boolean },
): Promise<void> {
  if (shape.forgets) worker.hand.delete([...worker.hand][0] ?? '');
  const listed = [...worker.hand];
  const given = { listed, freeSlots: Math.max(0, worker.slots - listed.length), draining: shape.draining };
  const expected = pulsed(model, worker, given);
  const answer = await worker.worker.pulse({
    attempts: listed,
    freeSlots: given.freeSlots,
    draining: given.draining,
  });
  expect(new Set(answer.cancel)).toEqual(expected.cancel);
  expect(new Set(answer.superseded)).toEqual(expected.superseded);
  expect(answer.replaced).toBe(expected.replaced);
  for (const id of [...answer.cancel, ...answer.superseded]) worker.hand.delete(id);
  if (answer.replaced) worker.hand.clear();
}

const pulseOne =
  (pick: number, shape: { forgets: boolean; draining: boolean }): Act =>
  async (model) => {
    const all = [...model.fleet.values(), ...model.ghosts];
    const worker = all[pick % Math.max(1, all.length)];
    if (worker) await pulse(model, worker, shape);
  };

/** A new incarnation of a name; the older one's process may go on as a ghost. */
export const register =
  (shape: { name: string; tags: string[]; slots: number }): Act =>
  async (model, world) => {
    const older = model.fleet.get(shape.name);
    const worker = await world.lab.worker(shape);
    if (older) {
      older.replacedAt = model.now;
      model.ghosts.push(older);
    }
    const fresh: Incarnation = {
      worker,
      tags: shape.tags,
      slots: shape.slots,
      pulsedAt: model.now,
      draining: false,
      replacedAt: null,
      freePulses: 0,
      hand: new Set(),
    };
    model.fleet.set(shape.name, fresh);
    pulsed(model, fresh, { listed: [], freeSlots: shape.slots, draining: false });
  };

/** Time goes by; those of the fleet that live pulse meanwhile. */
export const wait =
  (ms: number, living: readonly string[]): Act =>
  async (model, world) => {
    for (let left = ms; left > 0; left -= bounds.pulseEveryMs) {
      const step = living.length > 0 ? Math.min(left, bounds.pulseEveryMs) : left;
      await timePasses(world.lab.database, step);
      model.now += step;
      for (const name of living) {
        const worker = model.fleet.get(name);
        if (worker) await pulse(model, worker, { forgets: false, draining: worker.draining });
      }
      if (living.length === 0) return;
    }
  };

export const recover: Act = async (model, world) => {
  await world.lab.recover();
  recovered(model);
};

export const finalize: Act = async (model, world) => {
  await readAll(world);
  for (const task of model.tasks.values()) {
    if (task.finalized) continue;
    task.finalized = true;
    if (task.rows === 'good' && task.accepted !== null) model.effects.add(task.accepted);
    if (task.rows === 'bad') {
      model.poisoned.add(task.id);
      if (task.status === 'Completed') task.failure = 'finalization_poisoned';
      task.status = 'Failed';
    }
    task.planDue = task.status === 'Completed' && !task.superseded;
  }
};

export const settle: Act = async (model, world) => {
  const expected = settled(model);
  expect(await world.lab.settle(world.scan)).toBe(expected);
  model.scan.status = expected;
};

async function allowed(work: Promise<unknown>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch (error) {
    if (!isSonarError(error, 'conflict')) throw error;
    return false;
  }
}

const retry =
  (pick: number | null): Act =>
  async (model, world) => {
    const tasks = liveTasks(model);
    const only = pick === null ? null : (tasks[pick % Math.max(1, tasks.length)]?.id ?? null);
    if (pick !== null && only === null) return;
    const expected = retried(model, only);
    expect(await allowed(retryTasks(world.lab, world.scan.scan_id, only))).toBe(expected);
  };

const cancel: Act = async (model, world) => {
  const { status } = model.scan;
  const expected = !isScanOver(model) || status === 'Cancelled';
  expect(await allowed(cancelScan(world.lab.database, world.scan.scan_id, 'asked'))).toBe(expected);
  if (status === 'Running' || status === 'Paused') model.scan.status = 'Cancelling';
};

export const hold =
  (event: 'pause' | 'resume'): Act =>
  async (model, world) => {
    const { status } = model.scan;
    const expected = status === 'Running' || status === 'Paused';
    expect(await allowed(pauseScan(world.lab.database, world.scan.scan_id, event))).toBe(expected);
    if (expected) model.scan.status = event === 'pause' ? 'Paused' : 'Running';
  };

const edit =
  (revision: Model['newest']): Act =>
  async (model, world) => {
    await applyDefinition(world.lab.database, defaultWorkspace, definitionText(revision));
    model.newest = revision;
  };

export const fleetShapes = [
  { name: 'one', tags: ['t'], slots: 1 },
  { name: 'two', tags: ['t', 'u'], slots: 2 },
];

const nat = fc.nat({ max: 1_000 });

/** Weighted, so that most runs get far and some stay in odd corners. */
export const commandArbitraries: fc.Arbitrary<Command>[] = [
  ...repeated(3, fc.constant(command('plan', plan))),
  ...repeated(3, fc.constant(command('place', place))),
  ...repeated(2, fc.constant(command('publish', publish('confirmed')))),
  fc
    .constantFrom('returned' as const, 'nacked' as const)
    .map((outcome) => command(`publish: ${outcome}`, publish(outcome))),
  ...repeated(
    3,
    fc
      .record({ pick: nat, copied: fc.boolean() })
      .map(({ pick, copied }) =>
        command(`deliver ${pick}${copied ? ', a copy stays' : ''}`, deliver(pick, copied)),
      ),
  ),
  nat.map((pick) => command(`ask again ${pick}`, askAgain(pick))),
  ...repeated(
    3,
    fc
      .record({
        pick: nat,
        ending: fc.constantFrom<Ending>('empty', 'found', 'garbage', 'failed', 'failed with rows'),
        lost: fc.boolean(),
      })
      .map(({ pick, ending, lost }) =>
        command(`finish ${pick}: ${ending}${lost ? ', answer lost' : ''}`, finish(pick, ending, lost)),
      ),
  ),
  fc
    .record({ pick: nat, other: fc.boolean() })
    .map(({ pick, other }) =>
      command(`repeat ${pick}${other ? ' with another digest' : ''}`, repeat(pick, other)),
    ),
  nat.map((pick) => command(`release ${pick}`, release(pick))),
  fc
    .record({ pick: nat, forgets: fc.boolean(), draining: fc.boolean() })
    .map(({ pick, ...shape }) => command(`pulse ${pick} ${JSON.stringify(shape)}`, pulseOne(pick, shape))),
  fc.constantFrom(...fleetShapes).map((shape) => command(`register ${shape.name}`, register(shape))),
  ...repeated(
    2,
    fc
      .record({
        ms: fc.constantFrom(...clockSteps),
        living: fc.subarray(fleetShapes.map(({ name }) => name)),
      })
      .map(({ ms, living }) =>
        command(`wait ${ms} ms, alive: ${living.join(', ') || 'none'}`, wait(ms, living)),
      ),
  ),
  ...repeated(2, fc.constant(command('recover', recover))),
  ...repeated(2, fc.constant(command('finalize', finalize))),
  fc.constant(command('settle', settle)),
  fc.option(nat, { nil: null }).map((pick) => command(`retry ${pick ?? 'all'}`, retry(pick))),
  fc.constant(command('cancel', cancel)),
  fc.constantFrom('pause' as const, 'resume' as const).map((event) => command(event, hold(event))),
  fc
    .record({ retries: fc.nat({ max: 2 }), concurrency: fc.constantFrom(null, 1, 2) })
    .map((revision) => command(`edit ${JSON.stringify(revision)}`, edit(revision))),
];

function repeated<Item>(times: number, item: Item): Item[] {
  return Array.from({ length: times }, () => item);
}
