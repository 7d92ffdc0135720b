// A command as placement renders it and a worker runs it. Types only.

/** `in` and `out` stand for absolute paths that only the worker knows. */
export type RenderedPart =
  | { kind: 'text'; text: string }
  | { kind: 'in'; name: string }
  | { kind: 'out'; name: string };

/** One argument: its parts joined, never split again and never read by a shell. */
export type RenderedArgument = RenderedPart[];

export interface RenderedCommand {
  command: RenderedArgument[];
  stdin: RenderedArgument | null;
  env: Record<string, RenderedArgument>;
}
