// Which lines a step's input file is made of: in its form, without repetitions, and without what the scope keeps out.
import { createHash } from 'node:crypto';
import type { JsonValue, StepInputSpec } from '#sonar/contracts/definition.ts';
import { DigestSet } from './digest-set.ts';
import { scopeFault } from './judge-item.ts';
import { lineOf } from './list-line.ts';
import type { ParsedScope } from './scope.ts';

export type JudgedLine = { line: string } | { line: null; reason: string };

export class LineFilter {
  readonly #form: 'lines' | 'jsonl';
  readonly #seen: DigestSet | null;
  readonly #scope: ParsedScope | null;

  /** @param scope null where the file is no target */
  constructor(spec: Pick<StepInputSpec, 'as' | 'unique'>, scope: ParsedScope | null) {
    this.#form = spec.as === 'jsonl' ? 'jsonl' : 'lines';
    this.#seen = spec.unique ? new DigestSet() : null;
    this.#scope = scope;
  }

  /** A list gives each of its elements a line; what is empty or was there before gives none. */
  linesOf(value: JsonValue): JudgedLine[] {
    return this.#form === 'lines' && Array.isArray(value)
      ? value.flatMap((element) => this.#one(element))
      : this.#one(value);
  }

  #one(value: JsonValue): JudgedLine[] {
    if (value === null || value === '') return [];
    const written = lineOf(this.#form, value);
    if (!written.ok) return [{ line: null, reason: written.reason }];
    const { line } = written;
    if (this.#seen?.add(createHash('sha256').update(line).digest()) === false) return [];
    const fault = this.#scope === null ? null : scopeFault(this.#scope, line);
    return [fault === null ? { line } : { line: null, reason: fault }];
  }
}
