// What an upstream output holds for a task or an expansion: its files in their pinned order, and their rows.
import type { Definition, ReadSpec, Row, Source, Step } from '#sonar/contracts/definition.ts';
import type { TaskId } from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import { isOfParent } from '#sonar/domain/step-inputs.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { readerFor } from '#sonar/readers/registry.ts';
import { acceptedFiles, ownerFiles, type SourceFileRow } from '#sonar/stores/attempts.ts';
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
): AsyncIterable<SourceFileRow> {
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

/** The rows of an output, file after file; bad records are the finalization's to tell. */
export async function* rowsOfSource(
  parts: { database: Db; objects: ObjectStore },
  read: ReadSpec,
  step: Step,
  footing: Footing,
  source: OutputSource,
): AsyncIterable<Row> {
  for await (const file of filesOfSource(parts.database, step, footing, source))
    for await (const event of readerFor(read).read(await readVerified(parts.objects, file), read))
      if (event.kind === 'row') yield event.row;
}

/** @throws SonarError `internal` where the definition has no such output. */
export function readSpecOf(definition: Definition, source: OutputSource): ReadSpec | null {
  const upstream = definition.steps.find((candidate) => candidate.name === source.step);
  const output = upstream?.outputs.find((candidate) => candidate.name === source.output);
  if (output === undefined)
    throw new SonarError('internal', `the definition has no output ${source.step}.${source.output}`);
  return output.read;
}

/** A folder for each upstream task, numbered in the order in which the sources were pinned. */
export const pathInFolder = (row: Pick<SourceFileRow, 'source' | 'path'>): string =>
  `${String(row.source).padStart(6, '0')}/${row.path}`;
