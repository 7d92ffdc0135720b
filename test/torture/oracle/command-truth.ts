// The runs of commands: an attempt runs once, and a task runs twice at a time only where a machine was out of reach.
import { query } from '../../fixtures/query.ts';
import type { CommandRun } from '../command-runs.ts';
import type { Disturbances } from '../disturbances.ts';
import type { PatientDatabase } from '../patient-database.ts';
import type { Finding } from './finding.ts';

export async function judgeCommands(
  database: PatientDatabase,
  runs: readonly CommandRun[],
  disturbances: Disturbances,
): Promise<Finding[]> {
  const attempts = await database.rows<{ attempt_id: string; task_id: string }>(
    query`select attempt_id, task_id from sonar.attempt`,
  );
  const tasks = new Map(attempts.map(({ attempt_id, task_id }) => [attempt_id, task_id]));
  const findings: Finding[] = [];
  for (const [attemptId, ofAttempt] of Map.groupBy(runs, (run) => run.attemptId))
    if (ofAttempt.length > 1)
      findings.push({
        kind: 'duplicated',
        what: `attempt ${attemptId} ran ${ofAttempt.length} times: ${ofAttempt.map(nameOf).join('; ')}`,
      });
  for (const [taskId, ofTask] of Map.groupBy(runs, (run) => tasks.get(run.attemptId) ?? run.attemptId)) {
    const inOrder = ofTask.toSorted((a, b) => a.startedAt - b.startedAt);
    for (const [index, older] of inOrder.entries()) {
      const overlap = inOrder
        .slice(index + 1)
        .find(({ startedAt }) => startedAt < (older.endedAt ?? Number.POSITIVE_INFINITY));
      if (overlap && !disturbances.between(older.worker, older.startedAt, overlap.startedAt))
        findings.push({
          kind: 'duplicated',
          what: `task ${taskId} ran twice at once, and nothing was wrong with the older one's worker: ${nameOf(older)}; ${nameOf(overlap)}`,
        });
    }
  }
  return findings;
}

const nameOf = (run: CommandRun): string =>
  `${run.scan}/${run.step}/${run.item} attempt ${run.attemptId} on ${run.worker}, process ${run.pid}, uptime ${run.startedAt}–${run.endedAt ?? ''}`;
