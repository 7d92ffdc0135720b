import pino, { type Logger } from 'pino';

export type { Logger };

/** JSON lines on stderr, each with a stable `operation`; never a secret, never a payload. */
export function createLogger(role: string, level: string = process.env.SONAR_LOG_LEVEL ?? 'info'): Logger {
  return pino(
    { base: { role, pid: process.pid }, level, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination(2),
  );
}
