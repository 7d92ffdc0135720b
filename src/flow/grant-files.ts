// Presigned URLs for a running attempt: pages of its input files, and places for its outputs.
import type { Step } from '#sonar/contracts/definition.ts';
import { batchInput, fileInput, itemInput, outputObjectKey } from '#sonar/contracts/names.ts';
import type { InputsAnswer, InputsRequest, Uploads, UploadsAnswer } from '#sonar/contracts/worker-api.ts';
import type { Database } from '#sonar/db/pool.ts';
import { isOfParent, madeInputs } from '#sonar/domain/step-inputs.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import {
  type AttemptRow,
  definitionFiles,
  madeFile,
  parentFiles,
  pinnedFiles,
  type SourceFileRow,
  taskFiles,
} from '#sonar/stores/attempts.ts';
import type { ObjectStore } from '#sonar/transport/object-store.ts';
import { pathInFolder } from './read-source.ts';

// A page's URLs must all be used before they expire.
const filesPerPage = 200;

interface Parts {
  database: Database;
  objects: ObjectStore;
}

/**
 * One page of an input's files. In a directory of an All need every upstream task has a folder of its own,
 * numbered in the order in which the sources were pinned.
 * @throws SonarError `invalid` where the step has no such input.
 */
export async function grantInputs(
  parts: Parts,
  attempt: AttemptRow,
  step: Step,
  request: InputsRequest,
): Promise<InputsAnswer> {
  const after = parseCursor(request.after);
  const rows = await filesOf(parts.database, attempt, step, request.input, after);
  const files = await Promise.all(
    rows.map(async (row) => ({
      path: row.path,
      url: await parts.objects.presignGet(row.object_key),
      size: row.size,
      sha256: row.sha256,
    })),
  );
  const last = rows.at(-1);
  return { files, next: last && rows.length === filesPerPage ? cursorOf(last) : null };
}

interface GrantedRow extends SourceFileRow {
  /** In the page's order; `path` may have a folder in front. */
  ownPath: string;
}

const asItIs = (row: SourceFileRow): GrantedRow => ({ ...row, ownPath: row.path });

async function filesOf(
  db: Database,
  attempt: AttemptRow,
  step: Step,
  name: string,
  after: { source: number; path: string },
): Promise<GrantedRow[]> {
  const { task_id: taskId } = attempt;
  if (name === itemInput || name === batchInput)
    return (await taskFiles(db, taskId, name, after.path, filesPerPage)).map(asItIs);
  if (name.startsWith(fileInput(''))) {
    const file = name.slice(fileInput('').length);
    return (await definitionFiles(db, attempt, file, after.path, filesPerPage)).map(asItIs);
  }
  const input = step.inputs.find((candidate) => candidate.name === name);
  if (!input) throw new SonarError('invalid', `step "${step.name}" has no input "${name}"`);
  const { from } = input;
  if (from.kind === 'input' || madeInputs(step).includes(input)) {
    const suffixes = { file: '', directory: '', lines: '.txt', jsonl: '.jsonl' };
    const rows = after.path === '' ? await madeFile(db, taskId, name) : [];
    return rows.map((row) => ({ ...row, path: `${name}${suffixes[input.as]}`, ownPath: name }));
  }
  if (isOfParent(step, from))
    return (await parentFiles(db, taskId, from.output, after.path, filesPerPage)).map(asItIs);
  const rows = await pinnedFiles(db, taskId, from, after, filesPerPage);
  return rows.map((row) => ({ ...row, path: pathInFolder(row), ownPath: row.path }));
}

const cursorOf = (row: GrantedRow): string =>
  Buffer.from(JSON.stringify([row.source, row.ownPath])).toString('base64url');

function parseCursor(cursor: string | null): { source: number; path: string } {
  if (cursor === null) return { source: -1, path: '' };
  try {
    const [source, path] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as [unknown, unknown];
    if (Number.isSafeInteger(source) && typeof path === 'string' && !path.includes('\0'))
      return { source: source as number, path };
  } catch {
    // Falls through to the refusal below.
  }
  throw new SonarError('invalid', 'the cursor is not one that this api gave');
}

/** Places under the attempt's own prefix, keyed by hash: nothing that was accepted can be overwritten. */
export async function grantUploads(
  parts: Parts,
  attempt: AttemptRow,
  uploads: Uploads,
  maxBytes: number,
): Promise<UploadsAnswer> {
  const tooLarge = uploads.files.find((file) => file.size > maxBytes);
  if (tooLarge)
    throw new SonarError('invalid', `an output of ${tooLarge.size} bytes is over the cap of ${maxBytes}`);
  const { workspace_id: workspaceId, scan_id: scanId, attempt_id: attemptId } = attempt;
  return {
    files: await Promise.all(
      uploads.files.map((file) =>
        parts.objects.presignPut(outputObjectKey(workspaceId, scanId, attemptId, file.sha256), file.size),
      ),
    ),
  };
}
