import type { Database } from '#sonar/db/pool.ts';
import type { ScanWaker } from '#sonar/flow/wake-scans.ts';
import type { Settings } from '#sonar/platform/config.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import type { MasterKeys } from '#sonar/platform/signing.ts';
import type { Revisions } from '#sonar/stores/revisions.ts';
import type { ObjectStore } from '#sonar/transport/object-store.ts';
import type { TemporalGateway } from '#sonar/transport/temporal-client.ts';

/** What the routes work with; made by `roles/`. */
export interface ApiParts {
  database: Database;
  objects: ObjectStore;
  revisions: Revisions;
  temporal: TemporalGateway;
  waker: Pick<ScanWaker, 'wake'>;
  keys: MasterKeys;
  settings: Settings;
  log: Logger;
}
