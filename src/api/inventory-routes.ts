// What all scans have found, what differs between two of them, and lists that people bring in.
import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import {
  diffListSchema,
  diffQuerySchema,
  type InventoryFilter,
  importSchema,
  importViewSchema,
  inventoryListSchema,
  inventoryQuerySchema,
  recordTypeListSchema,
} from '#sonar/contracts/inventory-api.ts';
import type { Db } from '#sonar/db/pool.ts';
import { builtInTypes } from '#sonar/domain/records-identities.ts';
import { isScanOpen } from '#sonar/domain/scan-states.ts';
import { compareScans, coverageOf } from '#sonar/flow/compare-scans.ts';
import { importRecords, importSpec } from '#sonar/flow/import-records.ts';
import { listInventory, type Position } from '#sonar/flow/list-inventory.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { unfinishedFinalizations } from '#sonar/stores/finalizations.ts';
import { endedScansOf, type RecordFilter } from '#sonar/stores/inventory-lists.ts';
import { declaredTypes } from '#sonar/stores/record-types.ts';
import { findScan, type ScanRow } from '#sonar/stores/scans.ts';
import type { ApiParts } from './api-parts.ts';
import { diffItem, diffScan, importView, inventoryItem } from './inventory-views.ts';
import { scanOf } from './lookup.ts';
import { cursorOf, splitCursor } from './paging.ts';
import { operator, viewer } from './route-access.ts';

export function inventoryRoutes(instance: FastifyInstance, parts: ApiParts): void {
  const app = instance.withTypeProvider<ZodTypeProvider>();
  const { database } = parts;

  app.get(
    '/v1/inventory',
    { ...viewer, schema: { querystring: inventoryQuerySchema, response: { 200: inventoryListSchema } } },
    async (request) => {
      const workspaceId = request.token.workspace_id;
      const { scan: id, after, limit, ...filter } = request.query;
      const scan = id === undefined ? null : await scanOf(database, workspaceId, id);
      const { rows, next } = await listInventory(
        database,
        { workspaceId, sourceId: scan?.scan_id ?? null },
        recordFilter(filter),
        positionOf(after),
        limit,
      );
      return {
        items: rows.map(inventoryItem),
        next: cursorOfPosition(next),
        warnings: scan === null ? [] : await warningsOf(database, scan),
      };
    },
  );

  app.get(
    '/v1/inventory/diff',
    { ...viewer, schema: { querystring: diffQuerySchema, response: { 200: diffListSchema } } },
    async (request) => {
      const { after, limit, type, change, ...which } = request.query;
      const { from, to } = await scansToCompare(database, request.token.workspace_id, which);
      const { coverage, unjudged } = await coverageOf(database, from, to);
      const { items, next } = await compareScans(
        database,
        { from, to, coverage },
        { type: type ?? null, change: change ?? null },
        positionOf(after),
        limit,
      );
      return {
        from: diffScan(from),
        to: diffScan(to),
        unjudged,
        items: items.map(diffItem),
        next: cursorOfPosition(next),
      };
    },
  );

  app.post(
    '/v1/inventory/imports',
    { ...operator, schema: { body: importSchema, response: { 200: importViewSchema } } },
    async (request) => {
      const { workspace_id: workspaceId, name: importedBy } = request.token;
      const { sha256, name, read } = request.body;
      const spec = await importSpec(database, workspaceId, read);
      return importView(await importRecords(parts, { workspaceId, sha256, name, importedBy, read: spec }));
    },
  );

  app.get(
    '/v1/inventory/types',
    { ...viewer, schema: { response: { 200: recordTypeListSchema } } },
    async (request) => ({
      items: [
        ...Object.entries(builtInTypes).map(([name, type]) => ({
          name,
          key: [...type.required, ...type.optional],
          declaredBy: null,
        })),
        ...(await declaredTypes(database, request.token.workspace_id)).map((row) => ({
          name: row.name,
          key: row.declaration.key,
          declaredBy: row.declared_by,
        })),
      ],
    }),
  );
}

function recordFilter(filter: Omit<InventoryFilter, 'scan'>): RecordFilter {
  return {
    type: filter.type ?? null,
    definition: filter.definition ?? null,
    contains: filter.contains ?? null,
    fields: (filter.field ?? []).map((pair) => {
      const at = pair.indexOf('=');
      return [pair.slice(0, at), pair.slice(at + 1)] as const;
    }),
    seenSince: filter.seenSince ?? null,
    seenBefore: filter.seenBefore ?? null,
    newSince: filter.newSince ?? null,
    partial: filter.partial ?? null,
  };
}

function positionOf(after: string | undefined): Position {
  const [type = '', key = ''] = splitCursor(after);
  return { type, key };
}

const cursorOfPosition = (next: Position | null): string | null =>
  next === null ? null : cursorOf(`${next.type} ${next.key}`);

/** What a reader of one scan's records must know: there may be more of them. */
async function warningsOf(db: Db, scan: ScanRow): Promise<string[]> {
  const { due, poisoned } = await unfinishedFinalizations(db, scan.scan_id);
  return [
    ...(isScanOpen(scan.status) ? [`scan ${scan.scan_id} is ${scan.status}: there may be more to come`] : []),
    ...(due > 0 ? [`${due} result(s) of scan ${scan.scan_id} are not read yet`] : []),
    ...(poisoned > 0
      ? [`${poisoned} result(s) of scan ${scan.scan_id} are poisoned: what they hold is missing here`]
      : []),
  ];
}

/** @throws SonarError `invalid` where they are not named in one way, `not_found` where there are none. */
async function scansToCompare(
  db: Db,
  workspaceId: string,
  which: { from?: string | undefined; to?: string | undefined; definition?: string | undefined },
): Promise<{ from: ScanRow; to: ScanRow }> {
  const { from, to, definition } = which;
  if (definition !== undefined && from === undefined && to === undefined) {
    const [later, earlier] = await Promise.all(
      (await endedScansOf(db, workspaceId, definition, 2)).map((row) => findScan(db, row.scan_id)),
    );
    if (earlier && later) return { from: earlier, to: later };
    throw new SonarError(
      'not_found',
      `the definition "${definition}" has fewer than two scans that ended; list them with: sonar scan list`,
    );
  }
  if (definition === undefined && from !== undefined && to !== undefined)
    return { from: await scanOf(db, workspaceId, from), to: await scanOf(db, workspaceId, to) };
  throw new SonarError('invalid', 'name two scans by "from" and "to", or a definition');
}
