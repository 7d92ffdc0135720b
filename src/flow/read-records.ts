// The outputs of one accepted result become observations: verified bytes, rows, records with their keys.
import type { ReadSpec } from '#sonar/contracts/definition.ts';
import type { ReadEvent } from '#sonar/contracts/records.ts';
import type { Database } from '#sonar/db/pool.ts';
import { orderKeyOf, partOf } from '#sonar/domain/inventory-fold.ts';
import { recordKey } from '#sonar/domain/records.ts';
import { knownTypes, type RecordTypes } from '#sonar/domain/records-declared.ts';
import { builtInTypes } from '#sonar/domain/records-identities.ts';
import { safeSample, storableText } from '#sonar/domain/records-storable.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { readerFor } from '#sonar/readers/registry.ts';
import { type OutputFileRow, outputFilesOf } from '#sonar/stores/attempts.ts';
import type { FaultSample, FinalizationRow } from '#sonar/stores/finalizations.ts';
import type { NewObservation } from '#sonar/stores/inventory.ts';
import type { Revisions } from '#sonar/stores/revisions.ts';
import type { ObjectStore } from '#sonar/transport/object-store.ts';
import { readVerified } from './read-output.ts';
import { bytesAtOnce, sizeOf } from './upsert-inventory.ts';

export interface RecordReading {
  row: FinalizationRow;
  /** Those that the result's own revision knows. */
  types: RecordTypes;
  /** What is not written yet. */
  observations: NewObservation[];
  /** Of those. */
  bytes: number;
  records: number;
  bad: number;
  warnings: string[];
  /** Of the file that is being read: its head, or its first bad record. What is kept when reading it fails. */
  sample: FaultSample | null;
}

export const beginReading = (row: FinalizationRow): RecordReading => ({
  row,
  types: builtInTypes,
  observations: [],
  bytes: 0,
  records: 0,
  bad: 0,
  warnings: [],
  sample: null,
});

const observationsPerFlush = 2_000;
const maxWarnings = 20;

/**
 * Reads every output of the result that has a reader. `flush` writes what has gathered; what is left over when it
 * returns is the caller's to write.
 * @throws SonarError `invalid` where a file is not empty and has no good record, or is not what was accepted.
 */
export async function readRecords(
  parts: { database: Database; objects: ObjectStore; revisions: Revisions },
  reading: RecordReading,
  flush: () => Promise<void>,
): Promise<void> {
  const { row } = reading;
  const { compiled } = await parts.revisions.find(
    parts.database,
    row.workspace_id,
    row.definition_name,
    row.definition_revision,
  );
  const step = compiled.steps.find((candidate) => candidate.name === row.step);
  if (!step)
    throw new SonarError(
      'internal',
      `definition ${row.definition_name} has no step ${row.step} in revision ${row.definition_revision}`,
    );
  reading.types = knownTypes(compiled.records);
  for (const output of step.outputs) {
    if (!output.read) continue;
    const files = await outputFilesOf(parts.database, row.attempt_id, output.name);
    for (const [position, file] of files.entries())
      await readFile(parts.objects, reading, output.read, { ...file, position }, flush);
  }
}

type PlacedFile = OutputFileRow & { position: number };

async function readFile(
  objects: ObjectStore,
  reading: RecordReading,
  spec: ReadSpec,
  file: PlacedFile,
  flush: () => Promise<void>,
): Promise<void> {
  const badBefore = reading.bad;
  let good = 0;
  reading.sample = { file: file.path, text: null };
  const content = sampled(await readVerified(objects, file), reading.sample);
  for await (const event of readerFor(spec).read(content, spec)) {
    if (event.kind === 'warning') warn(reading, `${file.path}: ${event.message}`);
    else if (event.kind === 'bad') {
      reading.bad += 1;
      if (reading.bad === badBefore + 1) reading.sample.text = storableText(event.sample, 500);
      warn(reading, `${file.path}: ${event.reason}: ${event.sample}`);
    } else {
      const observed = observe(reading, file, event);
      // A row that makes no record is good as it is: it may feed a foreach.
      if (observed.length > 0 || event.records.length === 0) good += 1;
      for (const observation of observed) reading.bytes += sizeOf(observation);
      reading.observations.push(...observed);
      if (reading.observations.length >= observationsPerFlush || reading.bytes >= bytesAtOnce) {
        await flush();
        reading.observations = [];
        reading.bytes = 0;
      }
    }
  }
  const bad = reading.bad - badBefore;
  if (bad > 0 && good === 0)
    throw new SonarError(
      'invalid',
      `none of ${bad} records of ${file.path} could be read; the first: ${reading.warnings[0] ?? 'unknown'}`,
    );
}

const sampleBytes = 200;

/** The file as it is; its head goes into the sample, in which a bad record takes its place. */
async function* sampled(bytes: AsyncIterable<Uint8Array>, sample: FaultSample): AsyncIterable<Uint8Array> {
  for await (const chunk of bytes) {
    sample.text ??= safeSample(Buffer.from(chunk.subarray(0, sampleBytes)).toString('utf8'));
    yield chunk;
  }
}

function observe(
  reading: RecordReading,
  file: PlacedFile,
  event: Extract<ReadEvent, { kind: 'row' | 'records' }>,
): NewObservation[] {
  const { row } = reading;
  return event.records.flatMap((draft, index) => {
    const keyed = recordKey(draft, reading.types);
    if (!keyed.ok) {
      reading.bad += 1;
      warn(reading, `${file.path}: ${keyed.reason}`);
      return [];
    }
    reading.records += 1;
    const part = partOf(event.kind, index);
    return [
      {
        attemptId: row.attempt_id,
        output: file.output,
        file: file.path,
        row: event.ordinal,
        part,
        workspaceId: row.workspace_id,
        scanId: row.scan_id,
        step: row.step,
        type: keyed.type,
        key: keyed.key,
        orderKey: orderKeyOf(
          row.accepted_sequence,
          row.task_id,
          file.output,
          file.position,
          event.ordinal,
          part,
        ),
        observedAt: row.accepted_at,
        fields: keyed.fields,
        sets: keyed.sets,
        partial: file.partial,
      },
    ];
  });
}

function warn(reading: RecordReading, message: string): void {
  if (reading.warnings.length < maxWarnings) reading.warnings.push(storableText(message, 500));
}
