// A definition's text becomes a revision; the same text again is the same revision.
import { createHash } from 'node:crypto';
import type { Database } from '#sonar/db/pool.ts';
import { compileDefinition } from '#sonar/definition/compile.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import {
  ensureDefinition,
  findRevision,
  insertRevision,
  lockDefinition,
  type RevisionRow,
} from '#sonar/stores/definitions.ts';

/** @throws SonarError `invalid` with every problem of the text. */
export async function applyDefinition(
  database: Database,
  workspaceId: string,
  source: string,
): Promise<RevisionRow> {
  const compiled = compileDefinition(source);
  if (!compiled.ok)
    throw new SonarError('invalid', `the definition has ${compiled.problems.length} problem(s)`, {
      details: { problems: compiled.problems },
    });
  const { definition } = compiled;
  const sourceSha256 = createHash('sha256').update(source).digest('hex');
  return database.transaction(async (tx) => {
    await ensureDefinition(tx, workspaceId, definition.name);
    const latest = (await lockDefinition(tx, workspaceId, definition.name)) ?? 0;
    const current = await findRevision(tx, workspaceId, definition.name, latest);
    if (current?.source_sha256 === sourceSha256) return current;
    await insertRevision(tx, workspaceId, {
      name: definition.name,
      revision: latest + 1,
      source,
      sourceSha256,
      compiled: definition,
    });
    return (await findRevision(tx, workspaceId, definition.name, latest + 1)) as RevisionRow;
  });
}
