// Open scans whose workflow is gone or keeps failing get a fresh one; lost tasks are looked for; what is old goes.
import type { MaintainReport } from '#sonar/contracts/activities.ts';
import type { ScanId } from '#sonar/contracts/ids.ts';
import type { Database } from '#sonar/db/pool.ts';
import { messageOf } from '#sonar/platform/errors.ts';
import { finalizationIsDue } from '#sonar/stores/finalizations.ts';
import { purgeLedger } from '#sonar/stores/outbox.ts';
import { silentScans } from '#sonar/stores/scans.ts';
import { retireIncarnations } from '#sonar/stores/workers.ts';
import { failuresBeforeRestart, type TemporalGateway } from '#sonar/transport/temporal-client.ts';
import { type RecoverParts, type RecoveryResult, recoverTasks } from './recover-tasks.ts';

const scansPerPass = 200;
const purgedPerStatement = 5_000;
// Without more than one statement a pass, a busy week would leave more than a pass a minute takes away.
const purgesPerPass = 20;
const retiredPerPass = 1_000;

/** Found in PostgreSQL, never by Temporal's visibility, which may lag or be lost. */
export async function maintainScans(
  parts: RecoverParts & { temporal: TemporalGateway },
): Promise<Omit<MaintainReport, 'recovered'> & { recovered: RecoveryResult['scans'] }> {
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
  const retired = await retireIncarnations(database, settings.SONAR_WORKER_KEEP_MS, retiredPerPass);
  const recovery = await recoverTasks(parts).catch((error: unknown) => {
    log.error({ operation: 'recovery_failed', error: messageOf(error) });
    return undefined;
  });
  const recovered = recovery?.scans ?? new Map<ScanId, { tasks: number; failed: number }>();
  return { restarted, recovered, purged, retired, unread: await finalizationIsDue(database) };
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
