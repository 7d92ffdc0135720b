// The items of a foreach in the one order that every pass sees: what makes a place in the stream worth keeping.
import type { JsonValue, Row } from '#sonar/contracts/definition.ts';
import type { ScanId } from '#sonar/contracts/ids.ts';
import type { Database } from '#sonar/db/pool.ts';
import { type LiveDefinition, pinnedRead } from '#sonar/definition/live-definition.ts';
import {
  type JudgeContext,
  judgesOf,
  passed,
  type StreamElement,
  type StreamFile,
} from '#sonar/domain/judge-item.ts';
import { isOfParent } from '#sonar/domain/step-inputs.ts';
import type { SourceFileRow } from '#sonar/stores/attempts.ts';
import type { Revisions } from '#sonar/stores/revisions.ts';
import type { ScanRow } from '#sonar/stores/scans.ts';
import type { ObjectStore } from '#sonar/transport/object-store.ts';
import { linesOfInput } from './read-list.ts';
import { type Footing, filesOfSource, type OutputSource, pathInFolder, rowsOfSource } from './read-source.ts';

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

export interface StreamContext extends JudgeContext {
  scan: Pick<ScanRow, 'workspace_id' | 'definition_name'>;
  definition: LiveDefinition;
  scanId: ScanId;
  footing: Footing;
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
