import { messageOf } from '#sonar/platform/errors.ts';
import { StackError } from './stack-error.ts';

/** The fault of a process that did not come up: what happened, the end of its log, and the ways out. */
export function faultOfProcess(
  spec: { name: string; log: string; waysOut: readonly string[] },
  what: string,
  logTail: readonly string[],
  cause?: unknown,
): StackError {
  const lines = logTail.length > 0 ? logTail.map((line) => `  | ${line}`).join('\n') : '  | (empty)';
  const last = cause === undefined ? '' : ` (last probe: ${messageOf(cause)})`;
  return new StackError(
    'service_failed',
    `${spec.name} ${what}${last}\nThe end of ${spec.log}:\n${lines}`,
    ['read the whole log named above', ...spec.waysOut],
    { cause },
  );
}
