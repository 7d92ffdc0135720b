// The model's clock goes in steps; what a run takes in real time must stay far below the distance of any step to a
// bound, so all bounds are some ten times those of a real fleet.
export const bounds = {
  aliveWithinMs: 270_000,
  /** As domain/staleness.ts makes it: two pulses less than a life. */
  intakeGapMs: 130_000,
  staleAfterMs: 1_900_000,
  retryBackoffMs: 300_000,
  cancelGraceMs: 1_900_000,
  /** A worker pulses so often while time passes. */
  pulseEveryMs: 70_000,
};
export const clockSteps = [200_000, 1_200_000, 2_100_000];
/** A run that a loaded machine drags out longer than this proves nothing. */
export const longestRunMs = 60_000;

export const maxReleases = 3;
export const maxRecoveries = 3;
export const capacityMultiple = 2;

/** Four steps with all kinds of needs; `each` reads what it found, and its retries and concurrency may be edited. */
export const definitionText = (edit: { retries: number; concurrency: number | null }): string => `
sonar: 1
name: model
inputs: {lines: {type: lines, required: true}}
steps:
  each:
    tags: [t]
    foreach: {in: inputs.lines}
    command: [each, "\${item}", "\${out.found}"]
    outputs: {found: {path: found.jsonl, optional: true, read: {format: jsonl, record: domain, fields: {name: host}}}}
    retry: {max: ${edit.retries}, backoff: ${bounds.retryBackoffMs / 1_000}s}
    ${edit.concurrency === null ? '' : `maxConcurrent: ${edit.concurrency}`}
  child:
    tags: [t, u]
    needs: {each: single}
    command: [child]
  total:
    tags: [u]
    needs: {each: all}
    command: [total]
  report:
    tags: [t]
    needs: {child: all}
    command: [report]
`;
