// What an earlier process of this name left on this disk: processes, results and files.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '#sonar/platform/errors.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import { backoffMs, jittered, pause } from '#sonar/platform/wait.ts';
import type { ApiClient } from './api-client.ts';
import type { WorkerConfig } from './config.ts';
import { removeTree, type WorkerDirectories } from './directories.ts';
import { forEachOf } from './for-each-of.ts';
import { endProcessesAtHome, endRecordedGroups } from './process-trace.ts';
import { forgetResult, type StoredResult, storedResults } from './result-store.ts';

const resultsAtOnce = 8;

/** Before anything else of this worker runs: two workers' commands must not share a folder. */
export function endPredecessorProcesses(directories: WorkerDirectories, log: Logger): void {
  const groups = endRecordedGroups(directories.groups);
  const strays = endProcessesAtHome(`${directories.work}/`);
  if (groups + strays > 0)
    log.warn({ operation: 'predecessor_ended', groups, strays }, "a predecessor's processes were killed");
}

/**
 * Sends stored results, signed by their own attempts and under their own incarnation, before this incarnation
 * registers and makes them orphans. The bound counts from the api's first answer: registration would wait for it too.
 */
export async function resendStoredResults(
  directories: WorkerDirectories,
  api: ApiClient,
  config: WorkerConfig,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  let deadline = Number.POSITIVE_INFINITY;
  const resend = async (stored: StoredResult): Promise<null> => {
    for (let tried = 0; !signal.aborted && performance.now() < deadline; tried += 1) {
      const outcome = await api.result(stored.credential, stored.attemptId, stored.body).catch(unusable);
      if (outcome.kind === 'unusable') {
        log.error(
          { operation: 'results_given_up', results: 1, attemptId: stored.attemptId, reason: outcome.reason },
          'a stored result cannot be sent',
        );
        await forgetResult(directories.results, stored.attemptId);
        return null;
      }
      if (outcome.kind !== 'unreachable') {
        const disposition = outcome.kind === 'answer' ? outcome.value.disposition : 'rejected';
        log.info(
          { operation: 'result_resent', attemptId: stored.attemptId, disposition },
          "a predecessor's result was delivered",
        );
        await forgetResult(directories.results, stored.attemptId);
        return null;
      }
      if (outcome.answered) deadline = Math.min(deadline, performance.now() + config.resendForMs);
      await pause(jittered(backoffMs(tried, config.retryFirstMs, config.retryMaxMs), Math.random()), signal);
    }
    return null;
  };
  await forEachOf(await storedResults(directories.results), resultsAtOnce, resend);
}

/** The disk may hold anything: what signs nothing is nobody's result, and a start does not wait for it. */
const unusable = (error: unknown) => ({ kind: 'unusable' as const, reason: messageOf(error) });

/** Results that got no disposition go too: their tasks are dispatched anew. */
export async function clearDirectories(directories: WorkerDirectories, log: Logger): Promise<void> {
  const undelivered = (await readdir(directories.results)).filter((name) => name.endsWith('.json'));
  if (undelivered.length > 0)
    log.error(
      { operation: 'results_given_up', results: undelivered.length },
      'stored results got no disposition in time',
    );
  const { results, work, streams, shared, groups } = directories;
  for (const directory of [results, work, streams, shared, groups])
    for (const name of await readdir(directory))
      await removeTree(join(directory, name)).catch((error: unknown) => {
        // Space that is not given back is no reason not to serve.
        log.error(
          { operation: 'leftover_kept', path: join(directory, name), reason: messageOf(error) },
          'cannot be removed',
        );
      });
}
