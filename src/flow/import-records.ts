// A list that somebody brings in: a file that is stored by its hash becomes observations of a source of its own, by the
// same readers, keys and fold as results do. What is read is committed with how far it got, so an import that dies goes
// on where it was, and the same file read in the same way is the same import: it makes nothing twice.
import { createHash } from 'node:crypto';
import type { ReadSpec } from '#sonar/contracts/definition.ts';
import type { ClaimToken, ImportId } from '#sonar/contracts/ids.ts';
import type { ReadEvent, RecordDraft } from '#sonar/contracts/records.ts';
import type { Database } from '#sonar/db/pool.ts';
import { defaultMap } from '#sonar/definition/read-output.ts';
import { readerEntry, readerNames } from '#sonar/definition/reader-catalog.ts';
import { canonicalJson, orderKeyOf, partOf } from '#sonar/domain/inventory-fold.ts';
import { recordKey } from '#sonar/domain/records.ts';
import { knownTypes, type RecordTypes } from '#sonar/domain/records-declared.ts';
import { safeSample, storableText } from '#sonar/domain/records-storable.ts';
import { canonicalAddress } from '#sonar/domain/scope-address.ts';
import { isSonarError, messageOf, SonarError } from '#sonar/platform/errors.ts';
import { newId } from '#sonar/platform/ids.ts';
import { readerFor } from '#sonar/readers/registry.ts';
import {
  abandonedImport,
  advanceImport,
  claimImport,
  findImport,
  finishImport,
  type ImportRow,
  importTotals,
  insertImport,
  releaseImport,
  reopenImport,
} from '#sonar/stores/imports.ts';
import type { NewObservation } from '#sonar/stores/inventory.ts';
import { declaredTypes } from '#sonar/stores/record-types.ts';
import { knownFiles } from '#sonar/stores/stored-files.ts';
import type { ObjectStore } from '#sonar/transport/object-store.ts';
import { readVerified } from './read-output.ts';
import { bytesAtOnce, sizeOf, upsertInventory } from './upsert-inventory.ts';

interface Parts {
  database: Database;
  objects: ObjectStore;
}

const leaseMs = 120_000;
// A caller waits for it; what is in already is passed over again each time, so it is not much shorter either.
const sliceMs = 15_000;
const observationsPerBatch = 2_000;
const eventsPerBatch = 10_000;
// Claims in a row that came to nothing: a file that kills its readers is not read for ever.
const maxAttempts = 5;
const output = 'import';
/** Lines that are each a domain or an address. */
const hostList = 'host';

/**
 * Reads for a bounded time; the same call again goes on, and tries one anew that has failed.
 * @throws SonarError `invalid` where the file is not stored.
 */
export async function importRecords(
  parts: Parts,
  asked: { workspaceId: string; sha256: string; name: string; importedBy: string; read: ReadSpec },
): Promise<{ row: ImportRow; created: boolean }> {
  const { database } = parts;
  const { workspaceId, sha256, read } = asked;
  if (!(await knownFiles(database, workspaceId, [sha256])).has(sha256))
    throw new SonarError('invalid', `no file with SHA-256 ${sha256} is stored; upload it by POST /v1/files`);
  const readSha256 = createHash('sha256')
    .update(canonicalJson({ ...read }))
    .digest('hex');
  const which = { workspaceId, sha256, readSha256 };
  const inserted = await insertImport(database, { ...asked, ...which, importId: newId<ImportId>() });
  const row = await findImport(database, which);
  if (row === undefined) throw new SonarError('internal', `the import of ${sha256} is not there`);
  const reopened = row.status === 'failed' && (await reopenImport(database, row.import_id));
  if (row.status === 'due' || reopened) await readSlice(parts, row);
  return { row: (await findImport(database, which)) ?? row, created: inserted || reopened };
}

/**
 * How the file is read: a reader's own records, or a record of each row.
 * @throws SonarError `invalid` that says what is wrong with it.
 */
export async function importSpec(
  database: Database,
  workspaceId: string,
  asked: { format: string; record?: string | undefined; fields?: Record<string, string> | undefined },
): Promise<ReadSpec> {
  const { format: reader, record, fields } = asked;
  const entry = readerEntry(reader);
  if (entry === null)
    throw new SonarError('invalid', `there is no reader "${reader}"; there are ${readerNames.join(', ')}`);
  if (entry.ownRecords) {
    if (record === undefined && fields === undefined) return { reader, record: null, fields: {} };
    throw new SonarError(
      'invalid',
      `the reader ${reader} makes its own records: leave the record and fields out`,
    );
  }
  if (record === undefined)
    throw new SonarError('invalid', `the reader ${reader} has no records of its own: name the record`);
  const types = await typesOf(database, workspaceId);
  const type = Object.hasOwn(types, record) ? types[record] : undefined;
  if (type === undefined) {
    if (record === hostList && reader === 'lines') return { reader, record, fields: {} };
    throw new SonarError(
      'invalid',
      `there is no record type "${record}"; there are ${Object.keys(types).join(', ')}, and for lines ${hostList}`,
    );
  }
  const mapped = fields ?? defaultMap(reader, type.required);
  const missing = mapped === null ? undefined : type.required.find((field) => !Object.hasOwn(mapped, field));
  if (missing !== undefined)
    throw new SonarError(
      'invalid',
      `the record ${record} needs the field "${missing}": say which field of a row it is`,
    );
  return { reader, record, fields: mapped ?? {} };
}

const typesOf = async (database: Database, workspaceId: string): Promise<RecordTypes> =>
  knownTypes(
    Object.fromEntries(
      (await declaredTypes(database, workspaceId)).map((type) => [type.name, type.declaration]),
    ),
  );

/** Goes on with one import whose caller is gone. @returns whether there was one. */
export async function resumeImport(parts: Parts): Promise<boolean> {
  const row = await abandonedImport(parts.database, leaseMs);
  if (row === undefined) return false;
  await readSlice(parts, row);
  return true;
}

async function readSlice(parts: Parts, row: ImportRow): Promise<void> {
  const { database } = parts;
  const token = newId<ClaimToken>();
  const claimed = await claimImport(database, row.import_id, { token, leaseMs });
  if (claimed === undefined) return;
  const finish = (status: 'done' | 'failed', error: string | null) =>
    finishImport(database, row.import_id, token, { status, error });
  if (claimed.attempts > maxAttempts) {
    await finish('failed', 'every process that read it has died or lost its claim');
    return;
  }
  try {
    const types = await typesOf(database, row.workspace_id);
    const slice = new Slice(parts, row, token, types, claimed.events);
    if (!(await slice.read())) await releaseImport(database, row.import_id, token, { countsAttempt: true });
    else {
      const { records, bad_records: bad, first } = await importTotals(database, row.import_id);
      const hopeless = bad > 0 && records === 0;
      await finish(
        hopeless ? 'failed' : 'done',
        hopeless ? `none of ${bad} records could be read; the first: ${first ?? 'unknown'}` : null,
      );
    }
  } catch (error) {
    if (!isSonarError(error, 'invalid')) {
      // An outage is nobody's fault, and the file's least of all.
      const countsAttempt = !isSonarError(error, 'unreachable');
      await releaseImport(database, row.import_id, token, { countsAttempt }).catch(() => undefined);
      throw error;
    }
    await finish('failed', storableText(messageOf(error), 1_000));
  }
}

/** One claim's reading of a file: what is in already is passed over, the rest goes in by batches. */
class Slice {
  readonly #parts: Parts;
  readonly #row: ImportRow;
  readonly #token: ClaimToken;
  readonly #types: RecordTypes;
  readonly #until = performance.now() + sliceMs;
  #events = 0;
  #committed: number;
  #observations: NewObservation[] = [];
  #bytes = 0;
  #bad = 0;
  #warnings: string[] = [];

  constructor(parts: Parts, row: ImportRow, token: ClaimToken, types: RecordTypes, committed: number) {
    this.#parts = parts;
    this.#row = row;
    this.#token = token;
    this.#types = types;
    this.#committed = committed;
  }

  /** False: the time is up before the end. */
  async read(): Promise<boolean> {
    const row = this.#row;
    const spec =
      row.read.record === hostList && !Object.hasOwn(this.#types, hostList)
        ? { ...row.read, record: null }
        : row.read;
    for await (const event of readerFor(spec).read(await readVerified(this.#parts.objects, row), spec)) {
      this.#events += 1;
      // Events of the same bytes come in the same order: those before this one are committed.
      if (this.#events <= this.#committed) continue;
      this.#take(event);
      const full =
        this.#observations.length >= observationsPerBatch ||
        this.#bytes >= bytesAtOnce ||
        this.#events - this.#committed >= eventsPerBatch;
      if (!full) continue;
      await this.#commit();
      if (performance.now() > this.#until) return false;
    }
    if (this.#events > this.#committed) await this.#commit();
    return true;
  }

  #take(event: ReadEvent): void {
    if (event.kind === 'warning') this.#warn(event.message);
    else if (event.kind === 'bad') this.#refuse(`${event.reason}: ${event.sample}`);
    else
      for (const [index, draft] of this.#drafts(event).entries())
        this.#observe(draft, event.ordinal, partOf(event.kind, index));
  }

  #drafts(event: Extract<ReadEvent, { kind: 'row' | 'records' }>): RecordDraft<string>[] {
    if (this.#row.read.record !== hostList || Object.hasOwn(this.#types, hostList) || event.kind !== 'row')
      return event.records;
    const text = typeof event.row.line === 'string' ? event.row.line.trim() : '';
    const ip = canonicalAddress(text);
    return [ip === null ? { type: 'domain', fields: { name: text } } : { type: 'address', fields: { ip } }];
  }

  #observe(draft: RecordDraft<string>, ordinal: number, part: number): void {
    const row = this.#row;
    const keyed = recordKey(draft, this.#types);
    if (!keyed.ok) return this.#refuse(keyed.reason);
    const observation: NewObservation = {
      attemptId: row.import_id,
      output,
      file: '',
      row: ordinal,
      part,
      workspaceId: row.workspace_id,
      scanId: null,
      step: null,
      type: keyed.type,
      key: keyed.key,
      orderKey: orderKeyOf(row.accepted_sequence, row.import_id, output, 0, ordinal, part),
      observedAt: row.created_at,
      fields: keyed.fields,
      sets: keyed.sets,
      partial: false,
    };
    this.#bytes += sizeOf(observation);
    this.#observations.push(observation);
  }

  #refuse(reason: string): void {
    this.#bad += 1;
    this.#warn(reason);
  }

  #warn(message: string): void {
    if (this.#warnings.length < 20) this.#warnings.push(storableText(safeSample(message), 500));
  }

  async #commit(): Promise<void> {
    const { import_id: importId } = this.#row;
    await this.#parts.database.transaction(async (tx) => {
      const advanced = await advanceImport(
        tx,
        importId,
        { token: this.#token, leaseMs },
        {
          events: this.#events,
          records: this.#observations.length,
          badRecords: this.#bad,
          warnings: this.#warnings,
        },
      );
      if (advanced === 0) throw new SonarError('lease_lost', `the claim of import ${importId} was lost`);
      await upsertInventory(tx, this.#observations);
    });
    this.#committed = this.#events;
    this.#observations = [];
    this.#bytes = 0;
    this.#bad = 0;
    this.#warnings = [];
  }
}
