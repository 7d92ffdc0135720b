// Rows to what the API shows.

import { scanWorkflowId } from '#sonar/contracts/names.ts';
import type { ScanDetail, ScanView, StepView, TaskView, WorkerView } from '#sonar/contracts/scan-api.ts';
import type { Db } from '#sonar/db/pool.ts';
import type { LiveDefinition } from '#sonar/definition/live-definition.ts';
import { isScanOpen } from '#sonar/domain/scan-states.ts';
import { recoveryHold } from '#sonar/flow/recover-tasks.ts';
import { missingSecretsNote, parkedNote } from '#sonar/flow/report-scan.ts';
import { readLiveDefinition } from '#sonar/flow/take-revision.ts';
import { unfinishedFinalizations } from '#sonar/stores/finalizations.ts';
import { parkedAmong } from '#sonar/stores/parked-tags.ts';
import { recoveredOfScan } from '#sonar/stores/recovery.ts';
import type { Revisions } from '#sonar/stores/revisions.ts';
import { type ScanRow, scanScope } from '#sonar/stores/scans.ts';
import { recordCounts } from '#sonar/stores/source-records.ts';
import { type StepRow, stepsOfScan } from '#sonar/stores/steps.ts';
import { type TaskCount, taskCounts } from '#sonar/stores/task-counts.ts';
import type { TaskViewRow } from '#sonar/stores/task-views.ts';
import type { WorkerRow } from '#sonar/stores/workers.ts';

export function scanView(row: ScanRow): ScanView {
  return {
    id: row.scan_id,
    name: row.name,
    definition: row.definition_name,
    revision: row.definition_revision,
    pinned: row.pinned,
    status: row.status,
    generation: row.generation,
    cancelRequested: row.status === 'Cancelling' || row.status === 'Cancelled',
    reason: row.reason,
    createdAt: row.created_at,
    finishedAt: row.finished_at,
    lastTickAt: row.last_tick_at,
  };
}

export async function scanDetail(db: Db, revisions: Revisions, row: ScanRow): Promise<ScanDetail> {
  const [scope, steps, counts, unfinished, records, recovered, hold] = await Promise.all([
    scanScope(db, row.scan_id),
    stepsOfScan(db, row.scan_id),
    taskCounts(db, row.scan_id),
    unfinishedFinalizations(db, row.scan_id),
    recordCounts(db, row.scan_id),
    recoveredOfScan(db, row.scan_id),
    recoveryHold(db),
  ]);
  const live = await readLiveDefinition(db, revisions, row, steps);
  const views = steps.map((step) => stepView(step, counts, live));
  const parked = await parkedAmong(
    db,
    views.flatMap((view) => view.tags),
  );
  return {
    ...scanView(row),
    reason: row.reason ?? (hold && isScanOpen(row.status) ? hold.held_note : null),
    scope,
    steps: views.map((view) => ({
      ...view,
      note: [view.note ?? '', parkedNote(view.tags, parked)].filter((note) => note !== '').join('; ') || null,
      recovered: recovered.find((one) => one.step === view.step)?.attempts ?? 0,
    })),
    unfinalized: unfinished.due,
    poisoned: unfinished.poisoned,
    records: Object.fromEntries(records.map((count) => [count.type, count.records])),
    temporalWorkflowId: scanWorkflowId(row.scan_id),
  };
}

function stepView(
  row: StepRow,
  counts: readonly TaskCount[],
  definition: LiveDefinition,
): Omit<StepView, 'recovered'> {
  const own = counts.filter((count) => count.step === row.step);
  const of = (status: string) =>
    own.filter((count) => count.status === status).reduce((sum, count) => sum + count.tasks, 0);
  return {
    step: row.step,
    state: row.state,
    revision: row.revision,
    removed: row.removed,
    tags: definition.steps.find((step) => step.name === row.step)?.tags ?? [],
    counts: {
      pending: of('Pending'),
      published: of('Published'),
      running: of('Running'),
      completed: of('Completed'),
      failed: of('Failed'),
      cancelled: of('Cancelled'),
      noWork: own.filter((count) => count.no_work).reduce((sum, count) => sum + count.tasks, 0),
    },
    refused: row.refused,
    starvedSince: row.starved_since,
    note:
      [missingSecretsNote(row.missing_secrets), row.note ?? '', row.revision_note ?? '']
        .filter((note) => note !== '')
        .join('; ') || null,
  };
}

export function taskView(row: TaskViewRow): TaskView {
  return {
    id: row.task_id,
    scanId: row.scan_id,
    step: row.step,
    parentTaskId: row.parent_task_id,
    item: row.item,
    status: row.status,
    noWork: row.no_work,
    tag: row.tag,
    worker: row.worker_name,
    attempts: row.attempts,
    releases: row.releases,
    exitCode: row.exit_code,
    failure:
      row.failure_code === null ? null : { code: row.failure_code, message: row.failure_message ?? '' },
    warnings: row.warnings ?? [],
    records: row.records ?? 0,
    badRecords: row.bad_records ?? 0,
    publishedAt: row.published_at,
    startedAt: row.started_at,
    finishedAt: row.finished_at,
    recoveries: row.recoveries,
    lastRecovery:
      row.recovery_rule === null || row.lost_at === null
        ? null
        : { rule: row.recovery_rule, worker: row.lost_by, at: row.lost_at },
  };
}

export function workerView(row: WorkerRow): WorkerView {
  return {
    name: row.worker_name,
    incarnationId: row.incarnation_id,
    location: row.location,
    image: row.image,
    tags: row.tags,
    slots: row.slots,
    freeSlots: row.free_slots,
    state: row.state,
    attempts: row.attempts,
    registeredAt: row.registered_at,
    lastPulseAt: row.pulsed_at,
  };
}
