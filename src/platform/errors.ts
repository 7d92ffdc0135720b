// Faults carry a code that callers match on; the message is for people and names the way out.

/** `retryable` faults may pass by themselves; the others need somebody to change something. */
export const faultCodes = {
  configuration: { retryable: false },
  usage: { retryable: false },
  unauthenticated: { retryable: false },
  clock_skew: { retryable: true },
  forbidden: { retryable: false },
  not_found: { retryable: false },
  conflict: { retryable: false },
  invalid: { retryable: false },
  schema_version: { retryable: false },
  unreachable: { retryable: true },
  timed_out: { retryable: true },
  lease_lost: { retryable: false },
  internal: { retryable: true },
} as const;
export type FaultCode = keyof typeof faultCodes;

export class SonarError extends Error {
  readonly code: FaultCode;
  /** Extra members of the problem, safe to show. */
  readonly details: Record<string, unknown>;

  constructor(
    code: FaultCode,
    message: string,
    options: { cause?: unknown; details?: Record<string, unknown> } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = 'SonarError';
    this.code = code;
    this.details = options.details ?? {};
  }
}

/** Jest and Node have different realms of `Error`; the class's name and code are what can be trusted. */
export function isSonarError(error: unknown, code?: FaultCode): error is SonarError {
  const candidate = error as SonarError | null;
  return candidate?.name === 'SonarError' && (code === undefined || candidate.code === code);
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  const message = (error as { message?: unknown } | null)?.message;
  const code = (error as { code?: unknown } | null)?.code;
  if (typeof message === 'string' && message !== '') return message;
  return typeof code === 'string' ? code : String(error);
}
