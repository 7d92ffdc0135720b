// `sonar worker start`: the composition root of a tag worker. It reaches the api, the broker and presigned URLs.
import { hostname } from 'node:os';
import { environment as names } from '#sonar/contracts/names.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { createLogger } from '#sonar/platform/logger.ts';
import { workerConfigSchema } from '#sonar/worker/config.ts';
import { type SpotMode, spotEndpoint } from '#sonar/worker/spot-host.ts';
import { createWorker, workerExitCodes } from '#sonar/worker/worker.ts';

export interface TagWorkerOptions {
  name: string;
  tags: string[];
  slots: number;
  /** Absolute path. */
  directory: string;
  drainMs?: number;
  maxLifetimeMs?: number | undefined;
  spot?: SpotMode;
}

/** @throws SonarError `configuration` naming what is missing, and what the worker's start throws. */
export async function startTagWorker(
  { spot = 'auto', ...options }: TagWorkerOptions,
  environment: NodeJS.ProcessEnv,
): Promise<{ stop(): Promise<void>; done: Promise<number> }> {
  const parsed = workerConfigSchema.safeParse({
    ...options,
    apiUrl: environment[names.apiUrl],
    token: environment[names.token],
    amqpUrl: environment[names.amqpUrl],
    location: environment.SONAR_WORKER_LOCATION ?? hostname(),
    image: environment.SONAR_WORKER_IMAGE ?? '',
    metadataUrl: spotEndpoint(spot, environment),
  });
  if (!parsed.success) {
    const faults = parsed.error.issues.map(
      (issue) => `${variableOf(String(issue.path[0]))}: ${issue.message}`,
    );
    throw new SonarError('configuration', `the worker cannot start: ${faults.join('; ')}`);
  }
  const worker = createWorker(parsed.data, { log: createLogger('worker') });
  await worker.start();
  return {
    stop: () => worker.stop(),
    done: worker.done.then((end) => {
      return workerExitCodes[end.reason];
    }),
  };
}

const variables: Record<string, string> = {
  apiUrl: names.apiUrl,
  token: names.token,
  amqpUrl: names.amqpUrl,
  name: '--name',
  tags: '--tags',
  slots: '--slots',
  directory: '--dir',
  drainMs: '--drain',
  maxLifetimeMs: '--max-lifetime',
};
const variableOf = (field: string): string => variables[field] ?? field;
