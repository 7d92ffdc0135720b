// The items of a foreach in the one order that every pass sees: what makes a place in the stream worth keeping.
import { createHash } from 'node:crypto';
import type { ForeachSpec, JsonValue, Row, Step } from '#sonar/contracts/definition.ts';
import type { ScanId } from '#sonar/contracts/ids.ts';
import type { Database } from '#sonar/db/pool.ts';
import { type LiveDefinition, pinnedRead } from '#sonar/definition/live-definition.ts';
import { canonicalJson } from '#sonar/domain/inventory-fold.ts';
import { lineOf } from '#sonar/domain/list-line.ts';
import { fieldAt, pickItem } from '#sonar/domain/records-path.ts';
import { storableJson } from '#sonar/domain/records-storable.ts';
import { renderTarget } from '#sonar/domain/render.ts';
import type { RenderContext } from '#sonar/domain/render-values.ts';
import { checkTarget, type ParsedScope } from '#sonar/domain/scope.ts';
import { splitNetwork } from '#sonar/domain/split-network.ts';
import { isOfParent } from '#sonar/domain/step-inputs.ts';
import type { SourceFileRow } from '#sonar/stores/attempts.ts';
import type { Revisions } from '#sonar/stores/revisions.ts';
import type { ScanRow } from '#sonar/stores/scans.ts';
import type { ObjectStore } from '#sonar/transport/object-store.ts';
import { linesOfInput } from './read-list.ts';
import { type Footing, filesOfSource, type OutputSource, pathInFolder, rowsOfSource } from './read-source.ts';

/** UTF-8 bytes of one item: tasks carry theirs, and there may be a million of them. */
const maxItemBytes = 65_536;

export interface StreamFile {
  path: string;
  objectKey: string;
  size: number;
  sha256: string;
}

/** One place of the stream. What is passed over keeps its place, so that ordinals are the same in every pass. */
export type StreamElement =
  | { kind: 'item'; item: JsonValue; file: StreamFile | null; groupKey: string | null }
  | { kind: 'refused'; reason: string }
  | { kind: 'passed' };

/** Where a stream is taken up, and where it is: a list's line by its byte, with the ordinal of its first item. */
export interface StreamPlace {
  byte: number;
  ordinal: number;
}

export interface StreamParts {
  database: Database;
  objects: ObjectStore;
  revisions: Revisions;
}

export interface StreamContext {
  scan: Pick<ScanRow, 'workspace_id' | 'definition_name'>;
  definition: LiveDefinition;
  step: Step;
  scanId: ScanId;
  foreach: ForeachSpec;
  footing: Footing;
  inputs: RenderContext['inputs'];
  scope: ParsedScope;
}

/**
 * From `place` on, which moves along: to the start of a line once all elements before it were taken. What has an
 * ordinal below `from` is not looked at: it is given as passed, since an earlier pass has dealt with it.
 */
export async function* elementsOf(
  parts: StreamParts,
  context: StreamContext,
  place: StreamPlace,
  from: number,
): AsyncIterable<StreamElement> {
  let { ordinal } = place;
  const next = (judge: () => StreamElement): StreamElement => (ordinal++ < from ? passed : judge());
  if (context.foreach.files) {
    for await (const element of fileElements(parts, context)) yield next(() => element);
    return;
  }
  const source = context.foreach.in;
  if (source.kind === 'output') {
    for await (const row of rowsOf(parts, context, source))
      for (const judge of judgesOf(context, row)) yield next(judge);
    return;
  }
  for await (const { text, fault, end } of linesOfInput(parts, context.scanId, source.input, place.byte)) {
    if (text === null) yield next(() => ({ kind: 'refused', reason: fault }));
    else for (const judge of judgesOf(context, text)) yield next(judge);
    if (end > 0) Object.assign(place, { byte: end, ordinal });
  }
}

const passed: StreamElement = { kind: 'passed' };

/** What a row is judged by. */
export type JudgeContext = Pick<StreamContext, 'step' | 'foreach' | 'inputs' | 'scope'>;

/** One for each element that a row comes to; what an element is costs something, and is only asked when needed. */
export function* judgesOf(context: JudgeContext, row: Row | string): Iterable<() => StreamElement> {
  const { group, pick, split } = context.foreach;
  if (group !== null) {
    yield () => groupElement(row, group);
    return;
  }
  const item = typeof row === 'string' ? row : pickItem(row, pick);
  if (item === undefined) yield () => passed;
  else if (split === null || typeof item !== 'string') yield () => elementOf(context, item);
  else {
    const network = splitNetwork(item, split);
    if (network.ok) for (const piece of network.pieces) yield () => elementOf(context, piece);
    else yield () => ({ kind: 'refused', reason: network.reason });
  }
}

async function* rowsOf(
  parts: StreamParts,
  { scan, definition, step, footing }: StreamContext,
  source: OutputSource,
): AsyncIterable<Row> {
  const pinned = pinnedRead(definition, step.name, source);
  yield* rowsOfSource({ ...parts, scan }, { pinned }, step, footing, source);
}

async function* fileElements(
  parts: StreamParts,
  { step, foreach, footing }: StreamContext,
): AsyncIterable<StreamElement> {
  const source = foreach.in;
  if (source.kind === 'input') return;
  const single = isOfParent(step, source);
  for await (const row of filesOfSource(parts.database, step, footing, source))
    yield { kind: 'item', item: fileItem(row), file: streamFile(row, single), groupKey: null };
}

const fileItem = ({ path, size, sha256 }: SourceFileRow): JsonValue => ({ path, size, sha256 });

const streamFile = (row: SourceFileRow, single: boolean): StreamFile => ({
  path: single ? row.path : pathInFolder(row),
  objectKey: row.object_key,
  size: row.size,
  sha256: row.sha256,
});

/** A row of a group is checked with the whole group, when that is known. */
function groupElement(row: Row | string, field: string): StreamElement {
  const value = typeof row === 'string' ? undefined : fieldAt(row, field);
  if (typeof row === 'string' || value === undefined || value === null || value === '')
    return { kind: 'passed' };
  const item = storableJson(row);
  const fault = sizeFault(item);
  if (fault !== null) return { kind: 'refused', reason: fault };
  return { kind: 'item', item, file: null, groupKey: digestOf(storableJson(value)) };
}

function elementOf(context: JudgeContext, value: JsonValue): StreamElement {
  const item = storableJson(value);
  const reason = sizeFault(item) ?? formFault(context, item) ?? targetFault(context, item);
  return reason === null ? { kind: 'item', item, file: null, groupKey: null } : { kind: 'refused', reason };
}

const sizeFault = (item: JsonValue): string | null =>
  Buffer.byteLength(JSON.stringify(item)) > maxItemBytes
    ? `an item is larger than ${maxItemBytes} bytes`
    : null;

/** A batch is a file of lines, so each of its items must be one line. */
function formFault({ foreach }: Pick<StreamContext, 'foreach'>, item: JsonValue): string | null {
  if (foreach.batch === null || foreach.batch.as === 'directory') return null;
  const line = lineOf(foreach.batch.as, item);
  return line.ok ? null : line.reason;
}

/** Why an item may not be touched, or null. */
export function targetFault(
  { step, inputs, scope }: Pick<StreamContext, 'step' | 'inputs' | 'scope'>,
  item: JsonValue,
): string | null {
  if (step.target === null) return null;
  const rendered = renderTarget(step, { item, inputs });
  if (!rendered.ok) return rendered.reason;
  for (const target of rendered.targets) {
    const fault = scopeFault(scope, target);
    if (fault !== null) return fault;
  }
  return null;
}

/** Why one host, URL or network may not be touched, or null. */
export function scopeFault(scope: ParsedScope, target: string): string | null {
  const check = checkTarget(scope, target);
  return check.kind === 'refused'
    ? `${JSON.stringify(target).slice(0, 200)} is ${reasons[check.reason]}`
    : null;
}
const reasons = {
  denied: 'denied by the scope',
  not_allowed: 'outside the scope',
  unparseable: 'no host, URL or CIDR',
};

/** What `unique` and `group` compare: SHA-256 in hex. */
export const digestOf = (value: JsonValue): string =>
  createHash('sha256').update(canonicalJson(value)).digest('hex');
