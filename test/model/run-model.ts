import fc from 'fast-check';
import type { ObjectStore } from '#sonar/transport/object-store.ts';
import type { ClonedDatabase } from '../fixtures/cloned-database.ts';
import { openLaboratory } from '../fixtures/laboratory.ts';
import { expectAgreement } from './agree.ts';
import {
  commandArbitraries,
  deliver,
  finalize,
  finish,
  fleetShapes,
  hold,
  place,
  plan,
  publish,
  recover,
  register,
  settle,
  wait,
} from './commands.ts';
import { isScanOver, type Model, unended } from './model.ts';
import {
  bounds,
  capacityMultiple,
  definitionText,
  longestRunMs,
  maxRecoveries,
  maxReleases,
} from './times.ts';
import type { World } from './world.ts';

const longestStory = 60;

export interface ModelOptions {
  runs: number;
  seed: number;
  /** Of a failure that fast-check has printed: goes straight to it. */
  path?: string;
}

/** Random stories on the real flows; each then has to come to its end. Throws with the shortest story that fails. */
export async function runModel(
  parts: { clone: ClonedDatabase; objects: ObjectStore },
  { runs, seed, path }: ModelOptions,
): Promise<void> {
  await fc.assert(
    fc.asyncProperty(
      fc.commands(commandArbitraries, { maxCommands: longestStory, size: 'max' }),
      fc.integer({ min: 1, max: 4 }),
      async (commands, lines) => {
        const begun = performance.now();
        const { model, world } = await begin(parts, lines);
        await fc.asyncModelRun(() => ({ model, real: world }), commands);
        await comeToAnEnd(model, world);
        // The clock that is given must be what decides.
        fc.pre(performance.now() - begun < longestRunMs);
      },
    ),
    { numRuns: runs, seed, ...(path === undefined ? {} : { path }), endOnFailure: false },
  );
}

async function begin(
  { clone, objects }: { clone: ClonedDatabase; objects: ObjectStore },
  lines: number,
): Promise<{ model: Model; world: World }> {
  await clone.empty();
  const lab = openLaboratory(clone, objects, {
    SONAR_ALIVE_WITHIN_MS: bounds.aliveWithinMs,
    SONAR_PULSE_EVERY_MS: bounds.pulseEveryMs,
    SONAR_STALE_AFTER_MS: bounds.staleAfterMs,
    SONAR_CANCEL_GRACE_MS: bounds.cancelGraceMs,
    SONAR_RECOVERY_EVERY_MS: 1,
    SONAR_MAX_RECOVERIES: maxRecoveries,
    SONAR_MAX_RELEASES: maxReleases,
    SONAR_CAPACITY_MULTIPLE: capacityMultiple,
    // What is put back is due again at once: the model's clock has no such small steps.
    SONAR_BACKOFF_MS: 1,
    SONAR_MAX_BACKOFF_MS: 1,
    SONAR_FINALIZATION_ATTEMPTS: 2,
  });
  const revision = { retries: 1, concurrency: null };
  const names = Array.from({ length: lines }, (_, index) => `line-${index}`);
  const scan = await lab.scan(definitionText(revision), { inputs: { lines: names.join('\n') } });
  const model: Model = {
    now: 0,
    scan: { status: 'Running', generation: 1, revision },
    newest: revision,
    steps: {
      each: { activated: false, state: 'open' },
      child: { activated: false, state: 'open' },
      total: { activated: false, state: 'open' },
      report: { activated: false, state: 'open' },
    },
    lines,
    tasks: new Map(),
    attempts: new Map(),
    fleet: new Map(),
    ghosts: [],
    queues: new Map(),
    outbox: new Set(),
    intake: { openSince: 0, touchedAt: 0 },
    effects: new Set(),
    poisoned: new Set(),
  };
  const world: World = { lab, scan, sent: new Map() };
  for (const shape of fleetShapes) await register(shape)(model, world);
  return { model, world };
}

const roundsToTheEnd = 60;

/** Whatever has happened: with workers that live and commands that end, the scan ends, and leaves nothing. */
async function comeToAnEnd(model: Model, world: World): Promise<void> {
  for (const shape of fleetShapes) await register(shape)(model, world);
  model.ghosts.forEach((ghost) => ghost.hand.clear());
  for (let round = 0; !isScanOver(model) && round < roundsToTheEnd; round += 1) {
    if (model.scan.status === 'Paused') await hold('resume')(model, world);
    await plan(model, world);
    await place(model, world);
    await publish('confirmed')(model, world);
    for (let message = 0; waitingMessages(model) > 0 && message < 1_000; message += 1)
      await deliver(0, false)(model, world);
    while ([...model.fleet.values()].some(({ hand }) => hand.size > 0))
      await finish(0, 'found', false)(model, world);
    await finalize(model, world);
    // Long enough for any backoff, and for what was lost to be missed.
    await wait(
      1_200_000,
      fleetShapes.map(({ name }) => name),
    )(model, world);
    await recover(model, world);
    await plan(model, world);
    await settle(model, world);
    await expectAgreement(model, world);
  }
  expect(model.scan.status).toMatch(/^(Completed|CompletedWithErrors|Cancelled)$/);
  await publish('confirmed')(model, world);
  expect(model.outbox.size).toBe(0);
  expect(unended(model).filter((attempt) => attempt.cancelAskedAt === null)).toEqual([]);
}

const waitingMessages = (model: Model): number =>
  [...model.queues.values()].reduce((sum, queue) => sum + queue.length, 0);
