// What a planning pass reports to the scan's workflow: what there is to do, and what an operator wants to see.
import type { PlanReport, StepSummary } from '#sonar/contracts/activities.ts';
import type { Database } from '#sonar/db/pool.ts';
import { finalizationIsDueOf } from '#sonar/stores/finalizations.ts';
import { parkedAmong } from '#sonar/stores/parked-tags.ts';
import { settlementOf } from '#sonar/stores/settlement.ts';
import type { StepRow } from '#sonar/stores/steps.ts';
import { type TaskCount, taskCounts } from '#sonar/stores/task-counts.ts';
import type { PlanPass } from './plan-scan.ts';
import { recoveryHold, scanMayBeStale } from './recover-tasks.ts';

/** What an operator reads of secrets that a step waits for; empty where it waits for none. */
export const missingSecretsNote = (names: readonly string[]): string =>
  names.length === 0
    ? ''
    : `waits for ${names.map((name) => `secret "${name}"`).join(', ')}; set it with: sonar secret set ${names[0]}`;

/** What an operator reads of tags that the broker refuses; empty where it refuses none. */
export const parkedNote = (tags: readonly string[], parked: ReadonlyMap<string, string>): string =>
  tags
    .filter((tag) => parked.has(tag))
    .map((tag) => `tag "${tag}" is ${parked.get(tag)}`)
    .join('; ');

export async function reportScan(
  parts: { database: Database; settings: Parameters<typeof scanMayBeStale>[2] },
  pass: PlanPass,
  made: number,
  more: boolean,
): Promise<PlanReport> {
  const { scan } = pass;
  const { database } = parts;
  const [counts, settlement, unread, stale, hold] = await Promise.all([
    taskCounts(database, scan.scan_id),
    settlementOf(database, scan.scan_id),
    finalizationIsDueOf(database, scan.scan_id),
    scanMayBeStale(database, scan.scan_id, parts.settings),
    recoveryHold(database),
  ]);
  const closed = !settlement.open_steps && !settlement.open_expansions && !settlement.plan_due;
  const idle = !settlement.open_tasks && !settlement.unread;
  const tagsOf = new Map(pass.definition?.steps.map((step) => [step.name, step.tags]));
  const parked = await parkedAmong(database, [...tagsOf.values()].flat());
  const steps = [...pass.steps.values()].map((row) =>
    summarize(row, counts, tagsOf.get(row.step) ?? [], parked),
  );
  return {
    status: scan.status,
    name: scan.name,
    definition: scan.definition_name,
    reason: scan.reason ?? (hold && settlement.in_flight ? hold.held_note : ''),
    made,
    pending: scan.status === 'Running' && steps.some((step) => step.pending > 0),
    unread,
    // What is cancelled ends by itself or is ended by the scan's own pass.
    stale: stale && (scan.status === 'Running' || scan.status === 'Paused'),
    settleable:
      (scan.status === 'Running' && closed && idle) ||
      (scan.status === 'Cancelling' && idle && !settlement.in_flight),
    more,
    steps,
  };
}

function summarize(
  row: StepRow,
  counts: readonly TaskCount[],
  tags: readonly string[],
  parked: ReadonlyMap<string, string>,
): StepSummary {
  const of = (...statuses: string[]) =>
    counts
      .filter((count) => count.step === row.step && statuses.includes(count.status))
      .reduce((sum, count) => sum + count.tasks, 0);
  const noWork = counts
    .filter((count) => count.step === row.step && count.no_work)
    .reduce((sum, count) => sum + count.tasks, 0);
  const starved = row.starved_since !== null && of('Pending') > 0;
  const notes = [
    starved ? `starved: no live worker has ${tags.join(', ') || 'its tag'}` : '',
    parkedNote(tags, parked),
    missingSecretsNote(row.missing_secrets),
    row.refused > 0 ? `${row.refused} refused` : '',
    row.note ?? '',
    row.revision_note ?? '',
  ];
  return {
    step: row.step,
    state:
      row.state === 'open' && row.revision !== null && !row.begun && !row.removed ? 'waiting' : row.state,
    pending: of('Pending'),
    inFlight: of('Published', 'Running'),
    completed: of('Completed'),
    noWork,
    failed: of('Failed'),
    cancelled: of('Cancelled'),
    note: notes.filter((note) => note !== '').join('; '),
  };
}
