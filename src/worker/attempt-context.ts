import type { DispatchMessage } from '#sonar/contracts/dispatch-message.ts';
import { messageVersion, type Release } from '#sonar/contracts/worker-api.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import type { AttemptFolders } from './paths.ts';
import type { WorkerParts } from './worker-parts.ts';

/** Why a command is ended before its time. The first reason stays, but `superseded` outweighs the others. */
export type Intent =
  | { kind: 'cancel' }
  | { kind: 'superseded' }
  | { kind: 'release'; reason: Release['reason'] };

/** What every stage of one attempt works with. */
export interface AttemptContext {
  readonly parts: WorkerParts;
  readonly message: DispatchMessage;
  readonly deliveryId: string;
  readonly folders: AttemptFolders;
  readonly log: Logger;
  /** Aborts when the command must not run on, whatever the reason. */
  readonly interrupted: AbortSignal;
}

/** The members that every signed call of the attempt carries. */
export function identityOf({ parts, message }: AttemptContext) {
  return {
    v: messageVersion,
    attemptId: message.attemptId,
    dispatchKey: message.dispatchKey,
    worker: parts.config.name,
    incarnationId: parts.incarnationId,
  } as const;
}
