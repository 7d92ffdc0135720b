// Thin: each calls flows and reports. No SQL, no decisions.
import { Context } from '@temporalio/activity';
import type { PlanReport, ReconcilerActivities, RecoverReport } from '#sonar/contracts/activities.ts';
import type { ScanId } from '#sonar/contracts/ids.ts';
import { cancelScan } from '#sonar/flow/cancel-scan.ts';
import { expandItems } from '#sonar/flow/expand-items.ts';
import { maintainScans } from '#sonar/flow/maintain-scans.ts';
import { makeWaitingInputs } from '#sonar/flow/make-inputs.ts';
import { type PlaceParts, placeTasks, requestPlacement } from '#sonar/flow/place-tasks.ts';
import { planScan } from '#sonar/flow/plan-scan.ts';
import { recoverTasks } from '#sonar/flow/recover-tasks.ts';
import { reportScan } from '#sonar/flow/report-scan.ts';
import { settleScan } from '#sonar/flow/settle-scan.ts';
import type { Settings } from '#sonar/platform/config.ts';
import { isSonarError, messageOf } from '#sonar/platform/errors.ts';
import type { ObjectStore } from '#sonar/transport/object-store.ts';
import type { TemporalGateway } from '#sonar/transport/temporal-client.ts';
import { beating } from './beating.ts';

export interface ReconcilerParts extends Omit<PlaceParts, 'settings'> {
  objects: ObjectStore;
  temporal: TemporalGateway;
  settings: Settings;
}

// A pass that needs longer goes on in the next tick, so that history shows progress.
const planBudgetMs = 20_000;
const maxRounds = 200;

export function createReconcilerActivities(parts: ReconcilerParts): ReconcilerActivities {
  return {
    plan: ({ scanId }) => beating(() => plan(parts, scanId)),
    place: ({ scanId }) =>
      beating(async () => {
        try {
          await requestPlacement(parts.database);
          const result = await placeTasks(parts);
          const own = result?.placed.filter((row) => row.scanId === scanId) ?? [];
          return { placed: own.map((row) => `${row.tasks} on ${row.tag}`).join(', ') };
        } catch (error) {
          // The placement loop makes passes anyway: no scan's tick waits for one that fails.
          parts.log.error({ operation: 'placement_failed', error: messageOf(error) });
          return { placed: '' };
        }
      }),
    recover: ({ scanId }) => beating(() => recover(parts, scanId)),
    settle: ({ scanId }) => beating(async () => ({ status: await settleScan(parts.database, scanId) })),
    requestCancel: ({ scanId }) =>
      beating(async () => {
        try {
          await cancelScan(parts.database, scanId, 'cancelled in Temporal');
        } catch (error) {
          // Ended or gone in the meantime: there is nothing left to cancel.
          if (!isSonarError(error, 'conflict') && !isSonarError(error, 'not_found')) throw error;
        }
      }),
    maintain: () =>
      beating(async () => {
        const { recovered, ...report } = await maintainScans(parts);
        await wakeOthers(parts, recovered.keys(), null);
        return { ...report, recovered: [...recovered.values()].reduce((sum, { tasks }) => sum + tasks, 0) };
      }),
  };
}

async function plan(parts: ReconcilerParts, scanId: ScanId): Promise<PlanReport> {
  const budget = AbortSignal.any([AbortSignal.timeout(planBudgetMs), Context.current().cancellationSignal]);
  let made = 0;
  for (let round = 1; ; round += 1) {
    const pass = await planScan(parts, scanId, round === 1).catch((error: unknown) => {
      if (isSonarError(error, 'not_found')) return undefined;
      throw error;
    });
    if (!pass) return gone;
    made += pass.made;
    const expansions = pass.definition && [...pass.facts.values()].some((fact) => fact.openExpansions);
    let progressed = pass.progressed;
    if (pass.definition && (expansions || progressed || pass.inputsDue)) {
      const expanded = await expandItems(parts, pass.scan, pass.definition, pass.steps, budget);
      made += expanded.made;
      progressed ||= expanded.made > 0 || expanded.more;
      if (pass.inputsDue) {
        const waiting = await makeWaitingInputs(parts, pass.scan, pass.definition, budget);
        progressed ||= waiting.released > 0 || waiting.more;
      }
    }
    const more = progressed && (budget.aborted || round >= maxRounds);
    if (!progressed || more) return reportScan(parts, pass, made, more);
  }
}

/** A pass that fails is made again by the next tick; no scan's tick waits for it. */
async function recover(parts: ReconcilerParts, scanId: ScanId): Promise<RecoverReport> {
  try {
    const scans = (await recoverTasks(parts))?.scans ?? new Map<ScanId, { tasks: number; failed: number }>();
    await wakeOthers(parts, scans.keys(), scanId);
    const own = scans.get(scanId);
    if (!own) return { recovered: '' };
    const lost = own.failed > 0 ? `, ${own.failed} of them for good` : '';
    return { recovered: `${own.tasks} lost task${own.tasks === 1 ? '' : 's'}${lost}` };
  } catch (error) {
    parts.log.error({ operation: 'recovery_failed', error: messageOf(error) });
    return { recovered: '' };
  }
}

/** What was taken back of other scans: their ticks are told, and one whose workflow is gone is found by maintenance. */
async function wakeOthers(
  parts: ReconcilerParts,
  scans: Iterable<ScanId>,
  but: ScanId | null,
): Promise<void> {
  for (const scanId of scans)
    if (scanId !== but)
      await parts.temporal
        .wakeScan(scanId)
        .catch((error: unknown) =>
          parts.log.warn({ operation: 'wake_lost', scanId, error: messageOf(error) }),
        );
}

const gone: PlanReport = {
  status: undefined,
  name: '',
  definition: '',
  reason: '',
  made: 0,
  pending: false,
  unread: false,
  stale: false,
  settleable: false,
  more: false,
  steps: [],
};
