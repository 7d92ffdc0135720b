import { type InputType, listInputTypes } from '#sonar/contracts/definition.ts';
import type { ScanId } from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import type { RenderContext } from '#sonar/domain/render-values.ts';
import { scanInputs } from '#sonar/stores/scans.ts';
import { linesOfRow } from './read-list.ts';

/**
 * The named inputs as templates read them: lists as their lines, scalars as their text. Stored files are not among
 * them: nothing of any size is put on a command line.
 */
export async function readScanInputs(
  db: Db,
  scanId: ScanId,
  names: readonly string[],
): Promise<RenderContext['inputs']> {
  if (names.length === 0) return {};
  const rows = await scanInputs(db, scanId, names);
  return Object.fromEntries(
    rows
      .filter((row) => row.file_sha256 === null)
      .map((row) => [
        row.name,
        listInputTypes.includes(row.type as InputType) ? linesOfRow(row.content) : row.content,
      ]),
  );
}
