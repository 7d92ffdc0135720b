// The edge where a fault becomes words on stderr and an exit code.
import { isSonarError, messageOf } from '#sonar/platform/errors.ts';
import { type ExitCode, exitCodes } from './exit-codes.ts';
import { problemLine, problemsOf } from './problem-lines.ts';
import { safeText } from './safe-text.ts';

export interface FaultReport {
  exitCode: ExitCode;
  /** For people. */
  lines: string[];
  /** For programs: a problem as the API has them. */
  problem: Record<string, unknown>;
}

const exitCodeOfFault: Partial<Record<string, ExitCode>> = {
  usage: exitCodes.usage,
  configuration: exitCodes.usage,
  unreachable: exitCodes.unreachable,
};

/** Whatever was thrown, told so that its reader knows what to do. */
export function reportFault(error: unknown): FaultReport {
  const code = codeOf(error);
  const details = isSonarError(error) ? error.details : {};
  const message = messageOf(error);
  const file = typeof details.file === 'string' ? details.file : null;
  const problems = problemsOf(details);
  const unexpected = code === 'internal' && !isSonarError(error);
  return {
    exitCode: exitCodeOfFault[code] ?? exitCodes.fault,
    lines: [
      // An api may put its only problem into the detail as well.
      ...problems.map((problem) => problemLine(file, problem)).filter((line) => line !== safeText(message)),
      ...`sonar: ${message}`.split('\n').map(safeText),
      ...(unexpected ? stackOf(error) : []),
    ],
    problem: {
      type: 'about:blank',
      title: code.replaceAll('_', ' '),
      status: typeof details.status === 'number' ? details.status : 0,
      code: typeof details.problem === 'string' ? details.problem : code,
      detail: message,
      ...(problems.length === 0 ? {} : { problems }),
    },
  };
}

/** Faults of the program's own parts carry a code in lower case; those of the system do not count as told. */
function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && /^[a-z_]+$/.test(code) ? code : 'internal';
}

/** A fault nobody foresaw: where it came from helps whoever it is reported to. */
function stackOf(error: unknown): string[] {
  const stack = (error as { stack?: unknown } | null)?.stack;
  return typeof stack === 'string' ? stack.split('\n').slice(1, 6).map(safeText) : [];
}
