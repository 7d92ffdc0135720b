// What an upstream output holds for a task or an expansion: its files in their pinned order, and their rows.
import type { ReadSpec, Row, Source, Step } from '#sonar/contracts/definition.ts';
import type { TaskId } from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import { readOf } from '#sonar/definition/live-definition.ts';
import { isOfParent } from '#sonar/domain/step-inputs.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { readerFor } from '#sonar/readers/registry.ts';
import { acceptedFiles, ownerFiles, type ReadFileRow, type SourceFileRow } from '#sonar/stores/attempts.ts';
import type { Revisions } from '#sonar/stores/revisions.ts';
import type { ScanRow } from '#sonar/stores/scans.ts';
import type { ObjectStore } from '#sonar/transport/object-store.ts';
import { readVerified } from './read-output.ts';

export type OutputSource = Extract<Source, { kind: 'output' }>;

/** What a task or an expansion rests on. */
export interface Footing {
  parentTaskId: TaskId | null;
  /** Owner of the pinned sources of its step's All needs. */
  sourcesId: string | null;
}

const filesPerPage = 1_000;

/** Of Completed tasks only: of the parent, or of all that were pinned. */
export async function* filesOfSource(
  db: Db,
  step: Step,
  footing: Footing,
  source: OutputSource,
): AsyncIterable<ReadFileRow> {
  if (isOfParent(step, source)) {
    if (footing.parentTaskId !== null) yield* await acceptedFiles(db, footing.parentTaskId, source.output);
    return;
  }
  if (footing.sourcesId === null) return;
  let after = { source: -1, path: '' };
  for (;;) {
    const page = await ownerFiles(db, footing.sourcesId, source, after, filesPerPage);
    yield* page;
    const last = page.at(-1);
    if (!last || page.length < filesPerPage) return;
    after = { source: last.source, path: last.path };
  }
}

interface RowParts {
  database: Db;
  objects: ObjectStore;
  revisions: Revisions;
  scan: Pick<ScanRow, 'workspace_id' | 'definition_name'>;
}

/**
 * The rows of an output, file after file; bad records are the finalization's to tell. Each file is read by the
 * revision that its command ran by, so that an edit on the way moves no row; `pinned` is for files whose revision
 * named no reader, `always` for all.
 * @throws SonarError `internal` where neither names one.
 */
export async function* rowsOfSource(
  parts: RowParts,
  reading: { pinned: ReadSpec | null } | { always: ReadSpec },
  step: Step,
  footing: Footing,
  source: OutputSource,
): AsyncIterable<Row> {
  for await (const file of filesOfSource(parts.database, step, footing, source)) {
    const read =
      'always' in reading ? reading.always : ((await ownRead(parts, file, source)) ?? reading.pinned);
    if (read === null) throw new SonarError('internal', `${source.step}.${source.output} has no reader`);
    for await (const event of readerFor(read).read(await readVerified(parts.objects, file), read))
      if (event.kind === 'row') yield event.row;
  }
}

async function ownRead(parts: RowParts, file: ReadFileRow, source: OutputSource): Promise<ReadSpec | null> {
  const { workspace_id: workspace, definition_name: name } = parts.scan;
  const { compiled } = await parts.revisions.find(parts.database, workspace, name, file.definition_revision);
  return readOf(compiled.steps, source);
}

/** A folder for each upstream task, numbered in the order in which the sources were pinned. */
export const pathInFolder = (row: Pick<SourceFileRow, 'source' | 'path'>): string =>
  `${String(row.source).padStart(6, '0')}/${row.path}`;
