// A running scan takes the newest revision of its definition, step by step, under the scan's lock; what it cannot
// take is left as it was and told to people. Everything else reads the result: the live definition.
import type { Definition, InputType } from '#sonar/contracts/definition.ts';
import { failureCodes } from '#sonar/contracts/failure-codes.ts';
import type { Db } from '#sonar/db/pool.ts';
import { resolveInputs } from '#sonar/definition/input-values.ts';
import { type LiveDefinition, liveDefinition } from '#sonar/definition/live-definition.ts';
import { type MergedStep, mergeRevision, type ScanInputs } from '#sonar/definition/merge-revision.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import { newestRevision } from '#sonar/stores/definitions.ts';
import { closeExpansions } from '#sonar/stores/expansions.ts';
import type { Revisions } from '#sonar/stores/revisions.ts';
import { insertScanInput, recordRevision, type ScanRow, scanInputTypes } from '#sonar/stores/scans.ts';
import { addSteps, type StepRow, stepsOfScan, takeSteps } from '#sonar/stores/steps.ts';
import { cancelTasks, lockPendingTasks } from '#sonar/stores/tasks.ts';

interface TakeParts {
  revisions: Revisions;
  log: Logger;
}

// Further ones are cancelled by the next pass, which comes at once.
const cancelledPerPass = 5_000;

/** Of a revision between two passes nothing is seen: the newest counts. A pinned scan never takes one. */
export async function takeRevision(tx: Db, parts: TakeParts, scan: ScanRow): Promise<ScanRow> {
  if (!(await hasNewerRevision(tx, scan))) return scan;
  const newest = (await newestRevision(tx, scan.workspace_id, scan.definition_name)) ?? 0;
  const { compiled } = await parts.revisions.find(tx, scan.workspace_id, scan.definition_name, newest);
  const held = await stepsOfScan(tx, scan.scan_id);
  const partOf = await revisionsOf(tx, parts.revisions, scan, held);
  const inputs = await takeInputs(tx, scan, compiled);
  const merged = mergeRevision(held, partOf, { revision: newest, definition: compiled }, inputs);
  await recordMerge(tx, scan, merged);
  await recordRevision(tx, scan.scan_id, newest);
  parts.log.info({
    operation: 'revision_taken',
    scanId: scan.scan_id,
    definition: scan.definition_name,
    revision: newest,
    notes: merged.flatMap(({ step, note }) => (note === null ? [] : [`${step}: ${note}`])),
  });
  return { ...scan, definition_revision: newest };
}

/** Whether the next pass would take another revision. */
export async function hasNewerRevision(db: Db, scan: ScanRow): Promise<boolean> {
  if (scan.pinned) return false;
  const newest = await newestRevision(db, scan.workspace_id, scan.definition_name);
  return newest !== undefined && newest > scan.definition_revision;
}

/** What the scan runs: each step as it was taken, with its pins. */
export async function readLiveDefinition(
  db: Db,
  revisions: Revisions,
  scan: Pick<ScanRow, 'workspace_id' | 'definition_name'>,
  steps: readonly StepRow[],
): Promise<LiveDefinition> {
  const partOf = await revisionsOf(db, revisions, scan, steps);
  return liveDefinition(scan.definition_name, steps, (revision, name) =>
    partOf(revision).steps.find((step) => step.name === name),
  );
}

async function revisionsOf(
  db: Db,
  revisions: Revisions,
  scan: Pick<ScanRow, 'workspace_id' | 'definition_name'>,
  steps: readonly StepRow[],
): Promise<(revision: number) => Definition> {
  const found = new Map<number, Definition>();
  for (const { revision } of steps) {
    if (revision === null || found.has(revision)) continue;
    const { compiled } = await revisions.find(db, scan.workspace_id, scan.definition_name, revision);
    found.set(revision, compiled);
  }
  // Only asked for what was found above.
  return (revision) => found.get(revision) as Definition;
}

/** Inputs that the scan lacks and the revision has a value for become the scan's; its own stay as they were given. */
async function takeInputs(tx: Db, scan: ScanRow, definition: Definition): Promise<ScanInputs> {
  const rows = await scanInputTypes(tx, scan.scan_id);
  const types = Object.fromEntries(rows.map(({ name, type }) => [name, type as InputType]));
  const owner = { scanId: scan.scan_id, workspaceId: scan.workspace_id };
  for (const [name, spec] of Object.entries(definition.inputs)) {
    if (spec.required || Object.hasOwn(types, name)) continue;
    const resolved = resolveInputs({ inputs: { [name]: spec } }, {});
    const value = resolved.ok ? resolved.inputs[name] : undefined;
    if (value === undefined) continue;
    const content = Array.isArray(value) ? value.join('\n') : typeof value === 'string' ? value : '';
    await insertScanInput(tx, owner, { name, type: spec.type, content, fileSha256: null });
    types[name] = spec.type;
  }
  return { inputs: types, stored: new Set(rows.filter(({ stored }) => stored).map(({ name }) => name)) };
}

async function recordMerge(tx: Db, scan: ScanRow, merged: readonly MergedStep[]): Promise<void> {
  const added = merged.filter(({ isNew }) => isNew);
  const taken = merged.filter(({ isNew }) => !isNew);
  if (added.length > 0) await addSteps(tx, { scanId: scan.scan_id, workspaceId: scan.workspace_id }, added);
  if (taken.length > 0) await takeSteps(tx, scan.scan_id, taken);
}

/**
 * What of removed steps was not dispatched is over, and nothing more comes of their streams; what was, ends by itself, and is over when it comes back to
 * Pending.
 * @returns whether there may be more of it
 */
export async function cancelRemoved(tx: Db, scan: ScanRow, steps: Iterable<StepRow>): Promise<boolean> {
  const names = [...steps].filter((row) => row.removed && row.state === 'open').map((row) => row.step);
  if (names.length === 0) return false;
  const streams = await closeExpansions(tx, scan.scan_id, names, cancelledPerPass);
  const pending = await lockPendingTasks(tx, scan.scan_id, names, cancelledPerPass);
  await cancelTasks(tx, pending, {
    code: failureCodes.stepRemoved,
    message: 'the step was removed from the definition',
  });
  return streams || pending.length === cancelledPerPass;
}
