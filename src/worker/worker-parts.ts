import type { Logger } from '#sonar/platform/logger.ts';
import type { ApiClient } from './api-client.ts';
import type { WorkerConfig } from './config.ts';
import type { WorkerDirectories } from './directories.ts';
import type { Gate } from './gate.ts';
import type { SharedFiles } from './shared-files.ts';
import type { Spawner } from './spawner.ts';

/** What the parts of one worker share for as long as its incarnation lives. */
export interface WorkerParts {
  readonly config: WorkerConfig;
  readonly incarnationId: string;
  readonly directories: WorkerDirectories;
  readonly api: ApiClient;
  readonly spawner: Spawner;
  readonly shared: SharedFiles;
  readonly gate: Gate;
  readonly log: Logger;
  /** Aborts when the worker lets go of everything at once: no call, no wait outlives it. */
  readonly signal: AbortSignal;
  /** Aborts when the worker begins to end, whatever the reason. */
  readonly draining: AbortSignal;
  /** Sequence of the last pulse composed; 0 before the first. */
  pulseSequence(): number;
}
