// What the worker and its spawn helper say to each other over Node's IPC channel. Types only.

export interface StreamPlan {
  /** Where the bytes are kept; null: only hashed, counted and their head kept. */
  path: string | null;
  capBytes: number;
  headBytes: number;
}

export interface SpawnRequest {
  type: 'spawn';
  id: string;
  argv: string[];
  env: Record<string, string>;
  cwd: string;
  stdinPath: string | null;
  stdout: StreamPlan;
  stderr: StreamPlan;
  timeoutMs: number;
  graceMs: number;
  /** Where process groups are recorded. */
  groups: string;
  /** Where every command's folder lies, and nothing else. */
  work: string;
}

/** SIGTERM to the group, SIGKILL after the grace. */
export interface EndRequest {
  type: 'end';
  id: string;
  graceMs: number;
}

export interface StreamEnd {
  /** base64 */
  head: string;
  /** Bytes kept, and their SHA-256. */
  size: number;
  sha256: string;
  truncated: boolean;
  /** Why what is kept is not whole, other than by the cap. */
  fault: string | null;
}

export type CommandEnd =
  | {
      kind: 'exited';
      exitCode: number | null;
      signal: string | null;
      timedOut: boolean;
      durationMs: number;
      stdout: StreamEnd;
      stderr: StreamEnd;
    }
  /**
   * `code` is the system's: ENOENT, EACCES, E2BIG, EAGAIN, … `own`: it befell what this machine keeps ready for the
   * command (its folder, its streams), so it says nothing of the program.
   */
  | { kind: 'not_started'; code: string; message: string; own: boolean };

export type ToHelper = SpawnRequest | EndRequest;
export type FromHelper =
  /** `identity` tells the process from a later one with its number. */
  | { type: 'spawned'; id: string; pid: number; identity: string }
  | { type: 'ended'; id: string; end: CommandEnd };
