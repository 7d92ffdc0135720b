// The real side of a run: the flows on a database of their own, and what lies outside of them (processes of workers,
// a broker's queues), which only the model knows.
import type { ScanId, TaskId } from '#sonar/contracts/ids.ts';
import type { Database } from '#sonar/db/pool.ts';
import { newId } from '#sonar/platform/ids.ts';
import type { ScanRow } from '#sonar/stores/scans.ts';
import { type Laboratory, attemptOf as storedAttempt } from '../fixtures/laboratory.ts';
import { query } from '../fixtures/query.ts';
import { scriptedPublisher } from '../fixtures/scripted-publisher.ts';
import type { Incarnation, ModelAttempt } from './model.ts';

export interface World {
  lab: Laboratory;
  scan: ScanRow;
  /** What was sent as a result, to be sent again. */
  sent: Map<string, Parameters<Laboratory['accept']>[1]>;
}

export type PublishOutcome = 'confirmed' | 'returned' | 'nacked';

/** Hands over what is due. @returns the attempts that were handed over. */
export async function publishRound(world: World, outcome: PublishOutcome): Promise<string[]> {
  const publisher = scriptedPublisher(() => outcome);
  await world.lab.publish(publisher);
  return publisher.sent.map(({ body }) => (JSON.parse(body.toString()) as { attemptId: string }).attemptId);
}

export async function startOf(
  world: World,
  attempt: ModelAttempt,
  worker: Incarnation,
  delivery: string,
): Promise<string> {
  const answer = await world.lab.start(await storedAttempt(world.lab.database, attempt.id), worker.worker, {
    deliveryId: delivery,
  });
  return answer.disposition;
}

/** Reads until nothing waits any more: what cannot be read is poisoned on the way. */
export async function readAll({ lab }: World): Promise<void> {
  for (let round = 0; round < 200; round += 1) {
    await lab.finalize();
    const [row] = await lab.database.rows<{ due: number }>(
      query`select count(*)::integer as due from sonar.finalization where status = 'due'`,
    );
    if (row?.due === 0) return;
  }
  throw new Error('results are still to be read after 200 rounds');
}

export interface StoredTask {
  task_id: TaskId;
  step: string;
  parent_task_id: string | null;
  item_ordinal: number | null;
  status: string;
  attempt_id: string | null;
  retries: number;
  releases: number;
  recoveries: number;
  finalized: boolean;
  plan_due: boolean;
  superseded: boolean;
  failure_code: string | null;
}

export const storedTasks = (database: Database, scanId: ScanId): Promise<StoredTask[]> =>
  database.rows(query`
    select task_id, step, parent_task_id, item_ordinal, status, attempt_id, retries, releases, recoveries, finalized,
           plan_due, superseded_at is not null as superseded, failure_code
    from sonar.task where scan_id = ${scanId} order by task_id`);

export interface StoredAttempt {
  attempt_id: string;
  task_id: string;
  tag: string;
  worker_name: string | null;
  confirmed: boolean;
  ended: boolean;
  cancel_asked: boolean;
}

export const storedAttempts = (database: Database, scanId: ScanId): Promise<StoredAttempt[]> =>
  database.rows(query`
    select attempt_id, task_id, tag, worker_name, confirmed_at is not null as confirmed, ended_at is not null as ended,
           cancel_requested_at is not null as cancel_asked
    from sonar.attempt where scan_id = ${scanId} order by attempt_id`);

export async function storedScan(
  database: Database,
  scanId: ScanId,
): Promise<{ status: string; generation: number }> {
  const [row] = await database.rows<{ status: string; generation: number }>(
    query`select status, generation from sonar.scan where scan_id = ${scanId}`,
  );
  if (!row) throw new Error('the scan is gone');
  return row;
}

/** Host names of all observations, as often as they are there. */
export async function observedHosts(database: Database, scanId: ScanId): Promise<string[]> {
  const rows = await database.rows<{ key: string }>(
    query`select key from sonar.observation where scan_id = ${scanId} order by key`,
  );
  return rows.map(({ key }) => key);
}

export const freshDelivery = (): string => newId<string>();
