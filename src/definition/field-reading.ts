// Reading fields off the tree: each function reports what it finds wrong and returns null for it, so that one
// pass finds every fault.
import { namePattern } from '#sonar/contracts/names.ts';
import { parseDuration } from './duration.ts';
import type { FieldTable } from './fields.ts';
import { meantHint } from './nearest-name.ts';
import type { ProblemList } from './problem-list.ts';
import { below, kindName, type MapEntry, type Place, type ScalarNode } from './source-node.ts';

/** Entries of one mapping, such as the steps: some checks look at every pair of them. */
const maxEntries = 1_000;

/** The entries of a mapping as places, in order. */
export interface Entry extends Place {
  key: string;
  keyAt: number;
}

const entryOf = (path: string, { key, keyAt, value }: MapEntry): Entry => ({
  key,
  keyAt,
  node: value,
  path: below(path, key),
});

export class FieldReading {
  readonly problems: ProblemList;

  constructor(problems: ProblemList) {
    this.problems = problems;
  }

  fault(place: Place, message: string, hint: string | null = null): null {
    this.problems.add(place.path, place.node.at, message, hint);
    return null;
  }

  /** The known fields of a mapping. Unknown, missing and later ones are reported. */
  fields<Table extends FieldTable>(place: Place, table: Table): Partial<Record<keyof Table, Entry>> {
    const entries = this.entries(place);
    const found: Partial<Record<string, Entry>> = {};
    for (const entry of entries ?? []) {
      const field = Object.hasOwn(table, entry.key) ? table[entry.key] : undefined;
      if (field === undefined) {
        const known = Object.keys(table).filter((key) => table[key]?.later !== true);
        const hint = /^\d/.test(entry.key) ? commaHint : meantHint(entry.key, known);
        this.problems.add(entry.path, entry.keyAt, `unknown field \`${entry.key}\``, hint);
      } else if (field.later) this.later(entry, entry.key);
      else found[entry.key] = entry;
    }
    for (const [key, field] of entries === null ? [] : Object.entries(table)) {
      if (field.required && !entries?.some((entry) => entry.key === key)) {
        this.fault({ node: place.node, path: below(place.path, key) }, `\`${key}\` is missing`, field.help);
      }
    }
    return found as Partial<Record<keyof Table, Entry>>;
  }

  later(entry: Entry, what: string): null {
    this.problems.add(
      entry.path,
      entry.keyAt,
      `\`${what}\` is not read by this version of Sonar`,
      'leave it out',
    );
    return null;
  }

  entries(place: Place): Entry[] | null {
    if (place.node.kind === 'map') {
      const { entries } = place.node;
      if (entries.length <= maxEntries) return entries.map((entry) => entryOf(place.path, entry));
      return this.fault(place, `\`${place.path}\` has more than ${maxEntries} entries`);
    }
    return this.fault(place, `\`${place.path}\` must be a mapping, but is ${kindName(place.node)}`);
  }

  /** Entries of a mapping whose keys are names that the author chose. */
  named(place: Place | undefined, what: string): Entry[] {
    if (place === undefined) return [];
    const entries = this.entries(place) ?? [];
    for (const { key, keyAt, path } of entries) {
      if (!namePattern.test(key)) this.problems.add(path, keyAt, badName(what, key), nameHint);
    }
    return entries;
  }

  list(place: Place): Place[] | null {
    if (place.node.kind === 'list') {
      return place.node.items.map((node, index) => ({ node, path: `${place.path}[${index}]` }));
    }
    return this.fault(place, `\`${place.path}\` must be a list, but is ${kindName(place.node)}`);
  }

  /** A scalar with its source text. */
  scalar(place: Place): Place<ScalarNode> | null {
    const { node, path } = place;
    if (node.kind !== 'scalar')
      return this.fault(
        place,
        `\`${path}\` must be a text, but is ${kindName(node)}`,
        'quote it if a text is meant',
      );
    if (node.isNull)
      return this.fault(
        place,
        `\`${path}\` is empty`,
        'give it a value or leave it out; quote `null` and `~`',
      );
    if (node.text.includes('\0') || !node.text.isWellFormed())
      return this.fault(place, `\`${path}\` holds a NUL or half a surrogate pair`);
    return { node, path };
  }

  text(place: Place | undefined): string | null {
    return place === undefined ? null : (this.scalar(place)?.node.text ?? null);
  }

  name(place: Place | undefined, what: string): string | null {
    const text = this.text(place);
    if (place === undefined || text === null || namePattern.test(text)) return text;
    return this.fault(place, badName(what, text), nameHint);
  }

  oneOf<Choice extends string>(place: Place | undefined, choices: readonly Choice[]): Choice | null {
    const text = this.text(place);
    if (place === undefined || text === null) return null;
    const choice = choices.find((candidate) => candidate === text);
    if (choice !== undefined) return choice;
    return this.fault(place, `\`${text}\` is none of ${choices.join(', ')}`, meantHint(text, choices));
  }

  flag(place: Place | undefined): boolean | null {
    const text = this.text(place);
    if (place === undefined || text === null) return null;
    if (text === 'true' || text === 'false') return text === 'true';
    return this.fault(
      place,
      `\`${text}\` is neither true nor false`,
      /^(yes|on)$/i.test(text) ? 'did you mean `true`?' : null,
    );
  }

  whole(place: Place | undefined, minimum: number, maximum: number): number | null {
    const text = this.text(place);
    if (place === undefined || text === null) return null;
    const value = /^(0|[1-9]\d{0,9})$/.test(text) ? Number(text) : Number.NaN;
    if (value >= minimum && value <= maximum) return value;
    return this.fault(place, `\`${text}\` is no whole number from ${minimum} to ${maximum}`);
  }

  /** Milliseconds, at least 1. */
  duration(place: Place | undefined): number | null {
    const text = this.text(place);
    if (place === undefined || text === null) return null;
    const value = parseDuration(text);
    if (value !== null && value > 0) return value;
    const hint = /^\d+$/.test(text)
      ? `name the unit: \`${text}s\``
      : 'write `30s`, `30m`, `1h30m` or `500ms`, at most a year';
    return this.fault(place, `\`${text}\` is no duration`, hint);
  }
}

const badName = (what: string, text: string): string => `\`${text}\` cannot be the name of ${what}`;
const nameHint = 'a name is a lower-case letter, then up to 62 of a–z, 0–9, - and _';
const commaHint = 'inside { } a comma ends a value: quote it, as in "80,443"';
