import { createHash } from 'node:crypto';
import type { Result } from '#sonar/contracts/worker-api.ts';

/**
 * SHA-256 (hex) of all that a result claims: attempt, outcome, exit code, manifest and the hashes of
 * stdout and stderr. Same digest, same result; the api recomputes it before it believes a worker's.
 */
export function resultDigest(
  result: Omit<Result, 'digest' | 'v' | 'worker' | 'incarnationId' | 'durationMs'>,
): string {
  const claim = [
    result.attemptId,
    result.dispatchKey,
    result.outcome,
    result.exitCode,
    result.signal,
    result.failure?.code ?? null,
    result.manifest
      .toSorted((a, b) => compare(a.output, b.output) || compare(a.path, b.path))
      .map((entry) => [entry.output, entry.path, entry.size, entry.sha256]),
    [result.stdout.size, result.stdout.sha256, result.stderr.size, result.stderr.sha256],
  ];
  return createHash('sha256').update(JSON.stringify(claim)).digest('hex');
}

// Code unit order, never locale order: the worker and the api must agree.
function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
