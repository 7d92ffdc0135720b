// What may not be there any more when everything has ended.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { connect } from 'amqplib';
import { deadLetterQueue, tagQueue, workflowTypes } from '#sonar/contracts/names.ts';
import type { StackEnvironment } from '#sonar/stack/service-contract.ts';
import { query } from '../../fixtures/query.ts';
import type { PatientDatabase } from '../patient-database.ts';
import { workerPlans } from '../settings.ts';
import type { Finding } from './finding.ts';

const leaked = (what: string): Finding => ({ kind: 'leaked', what });

/** Rows that say that something is still to be done. */
export async function leftInDatabase(database: PatientDatabase): Promise<Finding[]> {
  const rows = await database.rows<{ what: string }>(query`
    select 'finalization ' || finalization_id || ' of task ' || task_id || ' is due: ' || coalesce(error, '') as what
    from sonar.finalization where status = 'due'
    union all select 'delivery of event ' || event_id || ' is queued: ' || coalesce(last_error, '')
    from sonar.outbox_delivery_queue
    union all select 'attempt ' || attempt_id || ' of task ' || task_id || ' has not ended' from sonar.attempt
    where ended_at is null
    union all select 'expansion ' || expansion_id || ' of ' || step || ' in scan ' || scan_id || ' is not done'
    from sonar.expansion where done_at is null
    union all select 'expansion ' || expansion_id || ' left staged row ' || ordinal from sonar.expansion_row
    -- A Cancelled scan keeps the mark: a retry goes on from there.
    union all select 'task ' || task_id || ' is due to be planned' from sonar.task join sonar.scan using (scan_id)
    where plan_due and sonar.scan.status <> 'Cancelled'
    union all select 'step ' || step || ' of scan ' || scan_id || ' is not wholly reopened' from sonar.scan_step
    where voiding or retry_until is not null
    union all select 'placement is claimed by ' || claimed_by from sonar.placement
    where claim_token is not null and claim_expires_at > clock_timestamp()`);
  return rows.map(({ what }) => leaked(what));
}

/** What a worker keeps of attempts: nothing, when it has none. Shared files are a cache. */
export function leftInDirectories(workerDirectory: string): Finding[] {
  return workerPlans.flatMap(({ name }) =>
    ['work', 'streams', 'results', 'groups'].flatMap((folder) =>
      namesIn(join(workerDirectory, name, folder)).map((left) =>
        leaked(`worker ${name} kept ${folder}/${left}`),
      ),
    ),
  );
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Commands are started with a home below their worker's folder, and what they start inherits it. */
export function leftProcesses(workerDirectory: string): Finding[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const environment = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0');
        return environment.some((entry) => entry.startsWith(`HOME=${workerDirectory}/`))
          ? [leaked(`process ${pid} of a command runs on: ${environment.join(' ').slice(0, 200)}`)]
          : [];
      } catch {
        return [];
      }
    });
}

/** To be asked when no worker holds a message any more. */
export async function leftInBroker(environment: StackEnvironment): Promise<Finding[]> {
  const connection = await connect(environment.SONAR_AMQP_URL, { noDelay: true, timeout: 10_000 });
  try {
    const channel = await connection.createChannel();
    const queues = [...new Set(workerPlans.flatMap(({ tags }) => tags)).values()].map(tagQueue);
    const findings: Finding[] = [];
    for (const queue of [...queues, deadLetterQueue]) {
      const { messageCount } = await channel.checkQueue(queue);
      if (messageCount > 0) findings.push(leaked(`queue ${queue} has ${messageCount} message(s)`));
    }
    return findings;
  } finally {
    await connection.close();
  }
}

export async function leftWorkflows(environment: StackEnvironment): Promise<Finding[]> {
  const connection = await Connection.connect({ address: environment.SONAR_TEMPORAL_ADDRESS });
  try {
    const client = new Client({ connection, namespace: environment.SONAR_TEMPORAL_NAMESPACE });
    const findings: Finding[] = [];
    const running = `WorkflowType = '${workflowTypes.scan}' and ExecutionStatus = 'Running'`;
    for await (const { workflowId } of client.workflow.list({ query: running }))
      findings.push(leaked(`workflow ${workflowId} runs on`));
    return findings;
  } finally {
    await connection.close();
  }
}
