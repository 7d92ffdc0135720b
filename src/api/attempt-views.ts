// Rows of attempts, files and events to what the API shows.
import { z } from 'zod';
import { outcomes } from '#sonar/contracts/states.ts';
import type { AttemptView, OutputView, ScanEvent, TaskLogs } from '#sonar/contracts/task-api.ts';
import type { AttemptViewRow, OutputViewRow } from '#sonar/stores/attempt-views.ts';
import type { ScanEventRow } from '#sonar/stores/scan-events.ts';

const stream = z.object({ head: z.string().nullable(), size: z.int(), truncated: z.boolean() });
/** What is kept of a result; of an older build it may lack something, and is shown without it then. */
const keptSchema = z.object({
  exitCode: z.int().nullable().catch(null),
  signal: z.string().nullable().catch(null),
  failure: z.object({ code: z.string(), message: z.string() }).nullable().catch(null),
  stdout: stream.nullable().catch(null),
  stderr: stream.nullable().catch(null),
});

const keptOf = (row: AttemptViewRow): z.infer<typeof keptSchema> => keptSchema.parse(row.body ?? {});

export function attemptView(row: AttemptViewRow): AttemptView {
  const { exitCode, signal, failure } = keptOf(row);
  return {
    id: row.attempt_id,
    number: row.number,
    tag: row.tag,
    worker: row.worker_name,
    placedAt: row.created_at,
    publishedAt: row.confirmed_at,
    startedAt: row.started_at,
    endedAt: row.ended_at,
    endReason: row.end_reason,
    endDetail: row.end_detail,
    accepted: row.accepted,
    outcome: outcomes.find((outcome) => outcome === row.outcome) ?? null,
    exitCode,
    signal,
    failure,
    files: row.files,
    finalization:
      row.finalization_id === null
        ? null
        : { id: row.finalization_id, status: row.finalization ?? '', error: row.finalization_error },
  };
}

/** @param stdoutFile the file of an output that took the standard output */
export function logsView(row: AttemptViewRow, stdoutFile: OutputViewRow | undefined): TaskLogs {
  const { stdout, stderr } = keptOf(row);
  const streamOf = (kept: z.infer<typeof stream> | null, file?: OutputViewRow) =>
    kept === null
      ? null
      : {
          head: kept.head ?? '',
          size: kept.size,
          truncated: kept.truncated || Buffer.from(kept.head ?? '', 'base64').length < kept.size,
          output: kept.head === null && file ? { output: file.output, path: file.path } : null,
        };
  return { attempt: attemptView(row), stdout: streamOf(stdout, stdoutFile), stderr: streamOf(stderr) };
}

export const outputView = (attempt: AttemptViewRow, row: OutputViewRow): OutputView => ({
  attempt: attempt.number,
  output: row.output,
  path: row.path,
  size: row.size,
  sha256: row.sha256,
  partial: row.partial,
});

export const eventView = (row: ScanEventRow): ScanEvent => ({
  at: row.at,
  kind: row.kind,
  step: row.step,
  taskId: row.task_id,
  tag: row.tag,
  worker: row.worker_name,
  reason: row.reason,
  exitCode: row.exit_code,
  message: row.message,
});
