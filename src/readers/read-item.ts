import type { Row } from '#sonar/contracts/definition.ts';

/** What a form of file gives before anything is made of it. */
export type ReadItem =
  | { kind: 'object'; value: Row; text: string }
  | { kind: 'bad'; reason: string; text: string }
  | { kind: 'warning'; message: string };
