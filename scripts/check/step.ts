/** One proof about the tree. A step reads; it never mends. */
export interface Step {
  readonly name: string;
  run(): Promise<Outcome>;
}

export type Outcome = { kind: 'passed'; note?: string } | { kind: 'failed'; report: string };

export const passed = (note?: string): Outcome =>
  note === undefined ? { kind: 'passed' } : { kind: 'passed', note };
export const failed = (report: string): Outcome => ({ kind: 'failed', report });

/** Passes when there is nothing to complain of. */
export function judge(complaints: readonly string[], note?: string): Outcome {
  return complaints.length === 0 ? passed(note) : failed(complaints.join('\n'));
}
