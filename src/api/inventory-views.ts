// Records and differences to what the API shows.
import type { DiffItem, DiffList, ImportView, InventoryItem } from '#sonar/contracts/inventory-api.ts';
import type { RecordState } from '#sonar/domain/inventory-fold.ts';
import type { RecordDifference } from '#sonar/flow/compare-scans.ts';
import type { ImportRow } from '#sonar/stores/imports.ts';
import type { RecordRow } from '#sonar/stores/inventory-lists.ts';
import type { ScanRow } from '#sonar/stores/scans.ts';

export function inventoryItem(row: RecordRow<RecordState>): InventoryItem {
  return {
    type: row.type,
    key: row.key,
    fields: Object.fromEntries(Object.entries(row.state.fields).map(([name, kept]) => [name, kept.value])),
    sets: row.state.sets,
    partial: row.state.partial,
    firstSeenAt: row.first_seen_at,
    lastSeenAt: row.last_seen_at,
  };
}

export function diffItem({ type, key, difference }: RecordDifference): DiffItem {
  return {
    change: difference.change,
    type,
    key,
    fields: 'fields' in difference ? difference.fields : [],
    reason: difference.change === 'unknown' ? difference.reason : null,
  };
}

export const importView = ({ row, created }: { row: ImportRow; created: boolean }): ImportView => ({
  id: row.import_id,
  name: row.name,
  status: row.status,
  created,
  records: row.records,
  badRecords: row.bad_records,
  warnings: row.warnings,
  error: row.error,
  createdAt: row.created_at,
  finishedAt: row.finished_at,
  importedBy: row.imported_by,
});

export const diffScan = (row: ScanRow): DiffList['from'] => ({
  id: row.scan_id,
  name: row.name,
  definition: row.definition_name,
  status: row.status,
  createdAt: row.created_at,
});
