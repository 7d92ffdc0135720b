// The item that a step is tried on: the one that was given, or the first that a scan would make.
import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import type { Definition, JsonValue, Row, Step } from '#sonar/contracts/definition.ts';
import { GroupFold } from '#sonar/domain/group-fold.ts';
import { type JudgeContext, judgesOf, targetFault } from '#sonar/domain/judge-item.ts';
import { fieldAt } from '#sonar/domain/records-path.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { filesOf, type GivenOutputs, readOf, rowsOf } from './given-files.ts';

export interface TrialItem {
  /** Undefined: the step has no `foreach`. */
  item: JsonValue | undefined;
  /** Of a batch, its items. */
  batch: JsonValue[];
  /** Where the item is a file. */
  file: string | null;
}

export type ChosenItem = ({ ok: true } & TrialItem) | { ok: false; item: JsonValue; reason: string };

/**
 * @param words what was given with `--item`; none: the first item there is
 * @throws SonarError `usage` where there is no item to try.
 */
export async function chooseItem(
  definition: Definition,
  step: Step,
  context: Omit<JudgeContext, 'step' | 'foreach'>,
  words: readonly string[],
  given: GivenOutputs,
): Promise<ChosenItem> {
  const { foreach } = step;
  if (foreach === null) {
    if (words.length > 0)
      throw new SonarError('usage', `--item: step "${step.name}" has no foreach, so it takes no item`);
    return { ok: true, item: undefined, batch: [], file: null };
  }
  if (words.length > 1 && foreach.batch === null)
    throw new SonarError('usage', `--item: a task of step "${step.name}" has one item; give one`);
  if (foreach.files) return fileItem(step, foreach, words, given);
  const judging = { ...context, step, foreach };
  const wanted = foreach.batch?.size ?? 1;
  const rows =
    words.length > 0 ? words.map((word) => wordItem(step, word)) : streamOf(definition, judging, given);
  const items: JsonValue[] = [];
  for await (const row of rows) {
    for (const judged of words.length > 0 ? [judgeGiven(judging, row)] : judge(judging, row)) {
      if (judged.kind === 'refused') {
        if (words.length > 0) return { ok: false, item: row, reason: judged.reason };
      } else if (judged.kind === 'item') items.push(judged.item);
    }
    if (items.length >= wanted) break;
  }
  const [first] = items;
  if (first === undefined)
    throw new SonarError(
      'usage',
      `step "${step.name}" has no item to try within the scope: give one with --item`,
    );
  if (foreach.batch === null) return { ok: true, item: first, batch: [], file: null };
  const batch = items.slice(0, wanted);
  const item = { items: batch.length, first, last: batch.at(-1) ?? first };
  return { ok: true, item, batch, file: null };
}

type Foreach = NonNullable<Step['foreach']>;
type Judged = { kind: 'item'; item: JsonValue } | { kind: 'refused'; reason: string } | { kind: 'passed' };

/** Rows are written as JSON, values bare. */
function wordItem(step: Step, word: string): JsonValue {
  const { foreach } = step;
  const isRow = foreach?.in.kind === 'output' && foreach.pick === null;
  if (!isRow) return word;
  try {
    const value = JSON.parse(word) as JsonValue;
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Said below.
  }
  throw new SonarError(
    'usage',
    `--item: the items of step "${step.name}" are rows; write one as JSON: --item '{"host": "example.com"}'`,
  );
}

/** A value that was given is an item already: nothing is picked from it or split any more. */
function judgeGiven(context: JudgeContext, value: JsonValue): Judged {
  const plain = { ...context, foreach: { ...context.foreach, pick: null, group: null, split: null } };
  const [judge] = typeof value === 'string' ? judgesOf(plain, value) : judgesOf(plain, value as Row);
  return judge?.() ?? { kind: 'passed' };
}

function judge(context: JudgeContext, row: JsonValue): Judged[] {
  if (context.foreach.group !== null) {
    const reason = targetFault(context, row);
    return [reason === null ? { kind: 'item', item: row } : { kind: 'refused', reason }];
  }
  return [...judgesOf(context, row as Row | string)].map((one) => one());
}

async function* streamOf(
  definition: Definition,
  { step, foreach, inputs }: JudgeContext,
  given: GivenOutputs,
): AsyncGenerator<JsonValue> {
  const source = foreach.in;
  if (source.kind === 'input') {
    const lines = inputs[source.input];
    yield* Array.isArray(lines) ? lines : [];
    return;
  }
  const read = readOf(definition, source);
  if (read === null) throw new SonarError('internal', `step ${step.name} reads rows without a reader`);
  if (foreach.group === null) yield* rowsOf(given, source, read);
  else yield await firstGroup(rowsOf(given, source, read), foreach.group);
}

/** All rows that have the first row's value. */
async function firstGroup(rows: AsyncIterable<Row>, field: string): Promise<JsonValue> {
  let fold: GroupFold | undefined;
  let value: string | undefined;
  for await (const row of rows) {
    const own = fieldAt(row, field);
    if (own === undefined || own === null || own === '') continue;
    value ??= JSON.stringify(own);
    if (JSON.stringify(own) !== value) continue;
    fold ??= new GroupFold(field, own);
    fold.add(row);
  }
  if (fold === undefined) throw new SonarError('usage', `no row has the field "${field}" to group by`);
  return fold.item;
}

async function fileItem(
  step: Step,
  foreach: Foreach,
  words: readonly string[],
  given: GivenOutputs,
): Promise<ChosenItem> {
  const [word] = words;
  const [first] = word !== undefined || foreach.in.kind === 'input' ? [] : await filesOf(given, foreach.in);
  const file = word ?? first?.file;
  if (file === undefined)
    throw new SonarError('usage', `step "${step.name}" has no file to try: --item FILE`);
  const stats = await stat(file).catch(() => null);
  if (stats?.isFile() !== true) throw new SonarError('usage', `--item: there is no file ${file}`);
  const sha256 = createHash('sha256')
    .update(await readFile(file))
    .digest('hex');
  return { ok: true, item: { path: first?.path ?? file, size: stats.size, sha256 }, batch: [], file };
}
