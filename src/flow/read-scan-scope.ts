// A scan's scope, parsed. It may be large and never changes, so it is parsed once and not once a task.
import type { ScanId } from '#sonar/contracts/ids.ts';
import type { Db } from '#sonar/db/pool.ts';
import { type ParsedScope, parseScope } from '#sonar/domain/scope.ts';
import { BoundedCache } from '#sonar/platform/bounded-cache.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { scanScope } from '#sonar/stores/scans.ts';

// A hundred thousand entries take tens of megabytes parsed.
const scopes = new BoundedCache<ScanId, ParsedScope>(32);

/** @throws SonarError `invalid` where the scope does not parse: it was checked when the scan was started. */
export async function readScanScope(db: Db, scanId: ScanId): Promise<ParsedScope> {
  const known = scopes.get(scanId);
  if (known) return known;
  const parsed = parseScope(await scanScope(db, scanId));
  if (!parsed.ok) throw new SonarError('invalid', `scan ${scanId} has a scope that does not parse`);
  scopes.set(scanId, parsed.scope);
  return parsed.scope;
}
