// All faults of a text, gathered and put in its order.
import type { DefinitionProblem } from '#sonar/contracts/definition.ts';

/** Problems that are shown; more of them say nothing new. */
const maxProblems = 200;

/** Messages quote what the author wrote, which may be as long as the text. */
const maxLength = 400;
const short = (text: string): string => (text.length > maxLength ? `${text.slice(0, maxLength - 1)}…` : text);

export class ProblemList {
  readonly #lineStarts: number[] = [0];
  readonly #problems: DefinitionProblem[] = [];

  constructor(source: string) {
    for (let at = source.indexOf('\n'); at !== -1; at = source.indexOf('\n', at + 1)) {
      this.#lineStarts.push(at + 1);
    }
  }

  get isEmpty(): boolean {
    return this.#problems.length === 0;
  }

  /** @param at offset in the source */
  add(path: string, at: number, message: string, hint: string | null = null): void {
    if (this.#problems.length < maxProblems) {
      const place = this.#position(at);
      this.#problems.push({
        path: short(path),
        ...place,
        message: short(message),
        hint: hint && short(hint),
      });
    }
  }

  /** In the order of the text. */
  sorted(): DefinitionProblem[] {
    return this.#problems.toSorted((a, b) => a.line - b.line || a.column - b.column);
  }

  #position(at: number): { line: number; column: number } {
    let low = 0;
    let high = this.#lineStarts.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((this.#lineStarts[middle] ?? 0) <= at) low = middle;
      else high = middle;
    }
    return { line: low + 1, column: at - (this.#lineStarts[low] ?? 0) + 1 };
  }
}
