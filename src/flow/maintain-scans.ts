// Open scans whose workflow is gone or keeps failing get a fresh one; old ledger rows go.
import type { Database } from '#sonar/db/pool.ts';
import type { Settings } from '#sonar/platform/config.ts';
import { messageOf } from '#sonar/platform/errors.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import { finalizationIsDue } from '#sonar/stores/finalizations.ts';
import { purgeLedger } from '#sonar/stores/outbox.ts';
import { silentScans } from '#sonar/stores/scans.ts';
import type { TemporalGateway } from '#sonar/transport/temporal-client.ts';

const scansPerPass = 200;
const purgedPerStatement = 5_000;
// Without more than one statement a pass, a busy week would leave more than a pass a minute takes away.
const purgesPerPass = 20;
const failuresBeforeRestart = 10;

/** Found in PostgreSQL, never by Temporal's visibility, which may lag or be lost. */
export async function maintainScans(parts: {
  database: Database;
  temporal: TemporalGateway;
  settings: Pick<Settings, 'SONAR_SILENT_SCAN_MS' | 'SONAR_LEDGER_KEEP_MS'>;
  log: Logger;
}): Promise<{ restarted: number; purged: number; unread: boolean }> {
  const { database, settings, temporal, log } = parts;
  let restarted = 0;
  for (const row of await silentScans(database, settings.SONAR_SILENT_SCAN_MS, scansPerPass)) {
    const scan = { scanId: row.scan_id, name: row.name, definition: row.definition_name };
    try {
      if (!(await temporal.restartIfFailing(scan, failuresBeforeRestart))) await temporal.startScan(scan);
      restarted += 1;
      log.warn({ operation: 'scan_workflow_started', scanId: row.scan_id, lastTickAt: row.last_tick_at });
    } catch (error) {
      log.error({ operation: 'scan_workflow_not_started', scanId: row.scan_id, error: messageOf(error) });
    }
  }
  const purged = await purge(database, settings.SONAR_LEDGER_KEEP_MS);
  return { restarted, purged, unread: await finalizationIsDue(database) };
}

async function purge(database: Database, keepMs: number): Promise<number> {
  let purged = 0;
  for (let time = 0; time < purgesPerPass; time += 1) {
    const rows = await purgeLedger(database, keepMs, purgedPerStatement);
    purged += rows;
    if (rows < purgedPerStatement) break;
  }
  return purged;
}
