// A result is accepted once: its terminal state and the work of reading it commit together.
import type { Step } from '#sonar/contracts/definition.ts';
import { failureCodes } from '#sonar/contracts/failure-codes.ts';
import { outputObjectKey } from '#sonar/contracts/names.ts';
import type { Disposition, Result } from '#sonar/contracts/worker-api.ts';
import type { Database, Db } from '#sonar/db/pool.ts';
import { storableJson, storableText } from '#sonar/domain/records-storable.ts';
import { decideResult, type ResultDecision } from '#sonar/domain/result-decision.ts';
import { newId } from '#sonar/platform/ids.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import { type AttemptRow, endAttempt, lockTask } from '#sonar/stores/attempts.ts';
import { noteMissingProgram } from '#sonar/stores/missing-programs.ts';
import {
  acceptedDigest,
  finishTask,
  insertFinalization,
  insertOutputFiles,
  insertResult,
  retryTask,
} from '#sonar/stores/results.ts';

/**
 * The caller has verified signature and digest. Same digest again: `duplicate`; another of an accepted
 * attempt: `conflict`; of an attempt that is not current: `superseded`, whatever it says.
 */
export async function acceptResult(
  parts: { database: Database; log: Logger },
  attempt: AttemptRow,
  step: Step,
  given: Result,
): Promise<Disposition> {
  const result = withMissingOutputs(step, given);
  const disposition = await parts.database.transaction(async (tx): Promise<Disposition> => {
    const task = await lockTask(tx, attempt.task_id);
    if (!task) return 'superseded';
    const decision = decideResult(
      {
        attemptId: attempt.attempt_id,
        acceptedDigest: await acceptedDigest(tx, attempt.attempt_id),
        taskStatus: task.status,
        currentAttemptId: task.attempt_id,
        retries: task.retries,
      },
      result,
      step.retry,
    );
    if (decision.kind !== 'answer') {
      await accept(tx, attempt, step, result, decision);
      return 'accepted';
    }
    // Its command is known to have ended, so it holds no slot any more.
    if (decision.disposition === 'superseded') await endAttempt(tx, attempt.attempt_id, 'superseded');
    return decision.disposition;
  });
  if (disposition === 'conflict' || disposition === 'superseded')
    parts.log.warn({
      operation: 'result_refused',
      disposition,
      attemptId: attempt.attempt_id,
      taskId: attempt.task_id,
    });
  return disposition;
}

async function accept(
  tx: Db,
  attempt: AttemptRow,
  step: Step,
  result: Result,
  decision: Exclude<ResultDecision, { kind: 'answer' }>,
): Promise<void> {
  const owner = { attemptId: attempt.attempt_id, workspaceId: attempt.workspace_id, taskId: attempt.task_id };
  const { manifest, ...body } = result;
  // It quotes what a command said, which may hold what PostgreSQL refuses.
  const stored = { digest: result.digest, outcome: result.outcome, body: storableJson(body) };
  await insertResult(tx, { ...owner, ...stored });
  const files = manifest.map((entry) => ({
    ...entry,
    objectKey: outputObjectKey(attempt.workspace_id, attempt.scan_id, attempt.attempt_id, entry.sha256),
  }));
  const partial = decision.kind !== 'complete';
  if (files.length > 0) await insertOutputFiles(tx, { ...owner, partial }, files);
  // A result that will be retried is not read.
  if (decision.kind === 'retry' || decision.kind === 'elsewhere') {
    if (decision.kind === 'elsewhere')
      await noteMissingProgram(tx, attempt.attempt_id, storableText(decision.message));
    const { exitCode, outcome } = result;
    const spent = decision.kind === 'retry' ? 1 : 0;
    await retryTask(tx, { ...owner, delayMs: decision.delayMs, exitCode, outcome, spent });
    return;
  }
  const readable = new Set(
    step.outputs.filter((output) => output.read !== null).map((output) => output.name),
  );
  const toRead = files.filter((file) => readable.has(file.output));
  await finishTask(tx, {
    ...owner,
    status: decision.kind === 'complete' ? 'Completed' : 'Failed',
    digest: result.digest,
    outcome: result.outcome,
    exitCode: result.exitCode,
    failure:
      decision.kind === 'fail'
        ? { code: storableText(decision.code), message: storableText(decision.message) }
        : null,
    finalized: toRead.length === 0,
  });
  if (toRead.length > 0)
    await insertFinalization(tx, {
      ...owner,
      finalizationId: newId(),
      scanId: attempt.scan_id,
      digest: result.digest,
      size: toRead.reduce((sum, file) => sum + file.size, 0),
    });
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
