import { type InputType, listInputTypes } from '#sonar/contracts/definition.ts';
import type { ScanId } from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import type { RenderContext } from '#sonar/domain/render-values.ts';
import { scanInputs } from '#sonar/stores/scans.ts';

/** The named inputs as templates and foreach read them: lists as their lines, scalars as their text. */
export async function readScanInputs(
  db: Db,
  scanId: ScanId,
  names: readonly string[],
): Promise<RenderContext['inputs']> {
  if (names.length === 0) return {};
  const rows = await scanInputs(db, scanId, names);
  return Object.fromEntries(
    rows.map((row) => [
      row.name,
      listInputTypes.includes(row.type as InputType)
        ? row.content.split('\n').filter((line) => line !== '')
        : row.content,
    ]),
  );
}
