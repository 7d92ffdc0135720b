// A command as it travels to a worker: everything but the worker's own paths is filled in.

/** `in` and `out` become local paths on the worker; the parts of one argument are joined without a gap. */
export type RenderedPart =
  | { kind: 'text'; text: string }
  | { kind: 'in'; name: string }
  | { kind: 'out'; name: string };
export type RenderedArgument = RenderedPart[];
