// Revisions never change once they are written, so what was read of them is kept.

import type { Db } from '#sonar/db/pool.ts';
import { BoundedCache } from '#sonar/platform/bounded-cache.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { findRevision, type RevisionRow } from './definitions.ts';

export interface Revisions {
  /**
   * Of a definition that is committed. The row is shared: it is not to be changed.
   * @throws SonarError `internal` where there is no such revision; what refers to one keeps it.
   */
  find(db: Db, workspaceId: string, name: string, revision: number): Promise<RevisionRow>;
}

// A compiled definition takes some kilobytes; the largest text that is read, a few megabytes.
const keptRevisions = 128;

/** One a process, handed to its parts. */
export function keepRevisions(max: number = keptRevisions): Revisions {
  const known = new BoundedCache<string, RevisionRow>(max);
  return {
    async find(db, workspaceId, name, revision) {
      const key = JSON.stringify([workspaceId, name, revision]);
      const kept = known.get(key);
      if (kept !== undefined) return kept;
      const row = await findRevision(db, workspaceId, name, revision);
      if (row === undefined) throw new SonarError('internal', `definition ${name} lost revision ${revision}`);
      known.set(key, row);
      return row;
    },
  };
}
