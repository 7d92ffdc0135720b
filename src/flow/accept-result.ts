// A result is accepted once: its terminal state and the work of reading it commit together. Results that arrive
// together may share the transaction: each is decided by its own locked task, and none waits for another's.
import type { Step } from '#sonar/contracts/definition.ts';
import { failureCodes } from '#sonar/contracts/failure-codes.ts';
import type { FinalizationId } from '#sonar/contracts/ids.ts';
import { outputObjectKey } from '#sonar/contracts/names.ts';
import type { Disposition, Result } from '#sonar/contracts/worker-api.ts';
import type { Database, Db } from '#sonar/db/pool.ts';
import { storableJson, storableText } from '#sonar/domain/records-storable.ts';
import { decideResult, type ResultDecision } from '#sonar/domain/result-decision.ts';
import { newId } from '#sonar/platform/ids.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import {
  type AttemptRow,
  endAttempt,
  type LockedTaskRow,
  lockFreeTasks,
  lockTasks,
} from '#sonar/stores/attempts.ts';
import { noteMissingProgram } from '#sonar/stores/missing-programs.ts';
import {
  acceptedDigests,
  finishTasks,
  insertFinalizations,
  insertOutputFiles,
  insertResults,
  scheduleRetries,
} from '#sonar/stores/results.ts';

/** A result whose signature, digest and manifest were verified. */
export interface GivenResult {
  attempt: AttemptRow;
  step: Step;
  result: Result;
}

interface Parts {
  database: Database;
  log: Logger;
}

/**
 * Same digest again: `duplicate`; another of an accepted attempt: `conflict`; of an attempt that is not current:
 * `superseded`, whatever it says. Waits for whoever holds the task.
 */
export async function acceptResult(parts: Parts, given: GivenResult): Promise<Disposition> {
  const { attempt } = given;
  const disposition = await parts.database.transaction(async (tx): Promise<Disposition> => {
    const tasks = await lockTasks(tx, [attempt.task_id]);
    const [decided] = await decide(tx, [given], tasks);
    if (decided === undefined) return 'superseded';
    await accept(tx, [decided]);
    // Its command is known to have ended, so it holds no slot any more.
    const end = dispositionOf(decided);
    if (end === 'superseded') await endAttempt(tx, attempt.attempt_id, 'superseded');
    return end;
  });
  warn(parts.log, attempt, disposition);
  return disposition;
}

/**
 * In one transaction, results of different attempts; locks are taken in order of the tasks and none is waited for.
 * Undefined stands for a member that has to go alone: somebody holds its task, or its attempt is to be ended.
 * @throws what any of them made the database throw; then nothing is accepted.
 */
export async function acceptResults(
  parts: Parts,
  members: readonly GivenResult[],
): Promise<(Disposition | undefined)[]> {
  const dispositions = await parts.database.transaction(async (tx) => {
    const tasks = await lockFreeTasks(
      tx,
      members.map(({ attempt }) => attempt.task_id),
    );
    const decided = await decide(tx, members, tasks);
    await accept(tx, decided);
    return new Map(decided.map((one) => [one.attempt.attempt_id, dispositionOf(one)]));
  });
  return members.map(({ attempt }) => {
    const disposition = dispositions.get(attempt.attempt_id);
    if (disposition === undefined || disposition === 'superseded') return undefined;
    warn(parts.log, attempt, disposition);
    return disposition;
  });
}

type Decided = GivenResult & { decision: ResultDecision };
type Accepted = GivenResult & { decision: Exclude<ResultDecision, { kind: 'answer' }> };

const dispositionOf = ({ decision }: Decided): Disposition =>
  decision.kind === 'answer' ? decision.disposition : 'accepted';

const isAccepted = (one: Decided): one is Accepted => one.decision.kind !== 'answer';

function warn(log: Logger, attempt: AttemptRow, disposition: Disposition): void {
  if (disposition !== 'conflict' && disposition !== 'superseded') return;
  const { attempt_id: attemptId, task_id: taskId } = attempt;
  log.warn({ operation: 'result_refused', disposition, attemptId, taskId });
}

/** Only of members whose task is locked. */
async function decide(
  tx: Db,
  members: readonly GivenResult[],
  tasks: ReadonlyMap<string, LockedTaskRow>,
): Promise<Decided[]> {
  const digests = await acceptedDigests(
    tx,
    members.map(({ attempt }) => attempt.attempt_id),
  );
  return members.flatMap(({ attempt, step, result: given }) => {
    const task = tasks.get(attempt.task_id);
    if (!task) return [];
    const result = withMissingOutputs(step, given);
    const locked = {
      attemptId: attempt.attempt_id,
      acceptedDigest: digests.get(attempt.attempt_id) ?? null,
      taskStatus: task.status,
      currentAttemptId: task.attempt_id,
      retries: task.retries,
    };
    return [{ attempt, step, result, decision: decideResult(locked, result, step.retry) }];
  });
}

const ownerOf = ({ attempt }: GivenResult) => ({
  attemptId: attempt.attempt_id,
  workspaceId: attempt.workspace_id,
  taskId: attempt.task_id,
});

/** Everything that the decisions write, one statement a table. */
async function accept(tx: Db, decided: readonly Decided[]): Promise<void> {
  const accepted = decided.filter(isAccepted);
  if (accepted.length === 0) return;
  await insertResults(
    tx,
    accepted.map((one) => {
      const { manifest: _, ...body } = one.result;
      const { digest, outcome } = one.result;
      // It quotes what a command said, which may hold what PostgreSQL refuses.
      return { ...ownerOf(one), digest, outcome, body: storableJson(body) };
    }),
  );
  const files = accepted.flatMap((one) =>
    one.result.manifest.map((entry) => ({
      ...ownerOf(one),
      ...entry,
      objectKey: outputObjectKey(
        one.attempt.workspace_id,
        one.attempt.scan_id,
        one.attempt.attempt_id,
        entry.sha256,
      ),
      partial: one.decision.kind !== 'complete',
    })),
  );
  if (files.length > 0) await insertOutputFiles(tx, files);
  await retryOrFinish(tx, accepted);
}

async function retryOrFinish(tx: Db, accepted: readonly Accepted[]): Promise<void> {
  const retried = accepted.flatMap((one) => {
    const { exitCode, outcome } = one.result;
    const { decision } = one;
    if (decision.kind !== 'retry' && decision.kind !== 'elsewhere') return [];
    const spent = decision.kind === 'retry' ? 1 : 0;
    return [{ ...ownerOf(one), exitCode, outcome, delayMs: decision.delayMs, spent }];
  });
  if (retried.length > 0) await scheduleRetries(tx, retried);
  for (const { attempt, decision } of accepted)
    if (decision.kind === 'elsewhere')
      await noteMissingProgram(tx, attempt.attempt_id, storableText(decision.message));
  const finished = accepted.flatMap((one) => {
    const { decision } = one;
    // A result that will be retried is not read.
    if (decision.kind === 'retry' || decision.kind === 'elsewhere') return [];
    const { digest, outcome, exitCode } = one.result;
    const failed = decision.kind === 'fail';
    const row = {
      ...ownerOf(one),
      status: failed ? ('Failed' as const) : ('Completed' as const),
      digest,
      outcome,
      exitCode,
      failureCode: failed ? storableText(decision.code) : null,
      failureMessage: failed ? storableText(decision.message) : null,
    };
    return [{ row, toRead: readableBytes(one), scanId: one.attempt.scan_id }];
  });
  if (finished.length === 0) return;
  await finishTasks(
    tx,
    finished.map(({ row, toRead }) => ({ ...row, finalized: toRead === null })),
  );
  const readable = finished.flatMap(({ row, toRead, scanId }) => {
    const { attemptId, workspaceId, taskId, digest } = row;
    if (toRead === null) return [];
    return [
      {
        attemptId,
        workspaceId,
        taskId,
        digest,
        finalizationId: newId<FinalizationId>(),
        scanId,
        size: toRead,
      },
    ];
  });
  if (readable.length > 0) await insertFinalizations(tx, readable);
}

/** Bytes that a reader will read; null where there is no file to read. */
function readableBytes({ step, result }: GivenResult): number | null {
  const read = new Set(step.outputs.filter((output) => output.read !== null).map((output) => output.name));
  const files = result.manifest.filter((entry) => read.has(entry.output));
  return files.length === 0 ? null : files.reduce((sum, file) => sum + file.size, 0);
}

/** A worker that calls a result complete without a declared output is corrected, not believed. */
function withMissingOutputs(step: Step, result: Result): Result {
  if (result.outcome !== 'completed') return result;
  const present = new Set(result.manifest.map((entry) => entry.output));
  const missing = step.outputs.find((output) => !output.optional && !present.has(output.name));
  if (!missing) return result;
  return {
    ...result,
    outcome: 'failed',
    failure: { code: failureCodes.outputMissing, message: `the command left no output "${missing.name}"` },
  };
}

/** A fault of what a manifest claims, or undefined: undeclared outputs, unsafe paths, one place twice. */
export function manifestFault(step: Step, result: Result, maxOutputBytes: number): string | undefined {
  const declared = new Set(step.outputs.map((output) => output.name));
  const places = new Set<string>();
  const bytes = new Map<string, number>();
  for (const entry of result.manifest) {
    if (!declared.has(entry.output)) return `step "${step.name}" declares no output "${entry.output}"`;
    const segments = entry.path.split('/');
    if (
      entry.path.includes('\0') ||
      !entry.path.isWellFormed() ||
      segments.some((segment) => segment === '' || segment === '.' || segment === '..')
    )
      return `output "${entry.output}" has the unsafe path ${JSON.stringify(entry.path)}`;
    const place = `${entry.output}/${entry.path}`;
    if (places.has(place)) return `output "${entry.output}" has ${JSON.stringify(entry.path)} twice`;
    places.add(place);
    const size = (bytes.get(entry.output) ?? 0) + entry.size;
    if (size > maxOutputBytes) return `output "${entry.output}" is larger than ${maxOutputBytes} bytes`;
    bytes.set(entry.output, size);
  }
  return undefined;
}
