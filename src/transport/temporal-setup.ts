import { Connection, type OperatorService, type WorkflowService } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { pause } from '#sonar/platform/wait.ts';

const indexedValueTypes = {
  Text: 1,
  Keyword: 2,
  Int: 3,
  Double: 4,
  Bool: 5,
  Datetime: 6,
  KeywordList: 7,
} as const;
export type SearchAttributeType = keyof typeof indexedValueTypes;

/** What Sonar needs of a Temporal server, whoever runs it. */
export interface TemporalSetup {
  namespace: string;
  retentionMs: number;
  searchAttributes: Readonly<Record<string, SearchAttributeType>>;
}

const alreadyExists = 6;
const notFound = 5;
const visibleWithinMs = 30_000;
const lookAgainMs = 100;

/**
 * Makes the namespace, its retention and its search attributes what `setup` says, and resolves when a workflow may use
 * them. May be repeated. Search attributes that `setup` does not name are left alone; one that exists with another type
 * is a fault, since Temporal cannot change it.
 */
export async function applyTemporalSetup(
  address: string,
  setup: TemporalSetup,
  signal?: AbortSignal,
): Promise<void> {
  const connection = await Connection.connect({ address, connectTimeout: 5_000 });
  try {
    await ensureNamespace(connection.workflowService, setup);
    // A new namespace reaches the server's caches after a moment; until then it answers NOT_FOUND.
    await retryWhile(isNotFound, () => ensureSearchAttributes(connection.operatorService, setup), signal);
    await retryWhile(
      () => true,
      async () => {
        await connection.workflowService.countWorkflowExecutions({
          namespace: setup.namespace,
          query: Object.keys(setup.searchAttributes)
            .map((name) => `${name} is null`)
            .join(' and '),
        });
      },
      signal,
    );
  } finally {
    await connection.close();
  }
}

/** The version of the Temporal server at `address`. Throws when it does not answer. */
export async function probeTemporal(address: string): Promise<string> {
  const connection = await Connection.connect({ address, connectTimeout: 5_000 });
  try {
    const info = await connection.workflowService.getSystemInfo({});
    return info.serverVersion;
  } finally {
    await connection.close();
  }
}

async function ensureNamespace(service: WorkflowService, setup: TemporalSetup): Promise<void> {
  const retention = msToTs(setup.retentionMs);
  try {
    await service.registerNamespace({
      namespace: setup.namespace,
      workflowExecutionRetentionPeriod: retention,
    });
  } catch (fault) {
    if ((fault as { code?: number }).code !== alreadyExists) throw fault;
    await service.updateNamespace({
      namespace: setup.namespace,
      config: { workflowExecutionRetentionTtl: retention },
    });
  }
}

async function ensureSearchAttributes(service: OperatorService, setup: TemporalSetup): Promise<void> {
  const { customAttributes } = await service.listSearchAttributes({ namespace: setup.namespace });
  const missing: Record<string, number> = {};
  for (const [name, type] of Object.entries(setup.searchAttributes)) {
    const present = customAttributes[name];
    if (present === undefined) missing[name] = indexedValueTypes[type];
    else if (present !== indexedValueTypes[type]) {
      throw new Error(
        `search attribute ${name} of namespace ${setup.namespace} is not of type ${type}; use another namespace`,
      );
    }
  }
  if (Object.keys(missing).length === 0) return;
  try {
    await service.addSearchAttributes({ namespace: setup.namespace, searchAttributes: missing });
  } catch (fault) {
    if ((fault as { code?: number }).code !== alreadyExists) throw fault;
  }
}

function isNotFound(fault: unknown): boolean {
  return (fault as { code?: number }).code === notFound;
}

async function retryWhile(
  passes: (fault: unknown) => boolean,
  work: () => Promise<void>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const until = performance.now() + visibleWithinMs;
  for (;;) {
    try {
      return await work();
    } catch (fault) {
      if (!passes(fault) || performance.now() > until) throw fault;
      await pause(lookAgainMs, signal);
      signal?.throwIfAborted();
    }
  }
}
