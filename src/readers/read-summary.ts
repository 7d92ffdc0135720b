// What a reader makes of a file, counted and shown in part: for people who look at one file.
import type { ReadSpec, Row } from '#sonar/contracts/definition.ts';
import type { ReadEvent } from '#sonar/contracts/records.ts';
import { type KeyedRecord, recordKey } from '#sonar/domain/records.ts';
import type { RecordTypes } from '#sonar/domain/records-declared.ts';
import { safeSample } from '#sonar/domain/records-storable.ts';
import { readerFor } from './registry.ts';

export interface ReadSummary {
  counts: { rows: number; records: number; bad: number; warnings: number };
  /** The first ones of each; the counts are of all. */
  records: KeyedRecord[];
  rows: Row[];
  bad: { reason: string; sample: string }[];
  warnings: string[];
}

/**
 * As a finalization does it: a row counts as good where none of its records was refused.
 * @param types record types beside Sonar's own, where the definition declares some
 */
export async function summarizeReading(
  bytes: AsyncIterable<Uint8Array>,
  spec: ReadSpec,
  limit: number,
  types?: RecordTypes,
): Promise<{ summary: ReadSummary; good: number }> {
  const counts = { rows: 0, records: 0, bad: 0, warnings: 0 };
  const summary: ReadSummary = { counts, records: [], rows: [], bad: [], warnings: [] };
  let good = 0;
  const addBad = (reason: string, sample: string): void => {
    if (counts.bad < limit) summary.bad.push({ reason, sample });
    counts.bad += 1;
  };
  const take = (event: ReadEvent): void => {
    if (event.kind === 'warning') {
      if (counts.warnings < limit) summary.warnings.push(event.message);
      counts.warnings += 1;
      return;
    }
    if (event.kind === 'bad') {
      addBad(event.reason, event.sample);
      return;
    }
    if (event.kind === 'row') {
      if (counts.rows < limit) summary.rows.push(event.row);
      counts.rows += 1;
    }
    const before = counts.bad;
    for (const draft of event.records) {
      const keyed = recordKey(draft, types);
      if (!keyed.ok) addBad(keyed.reason, safeSample(JSON.stringify(draft.fields)));
      else {
        const { type, key, fields, sets } = keyed;
        if (counts.records < limit) summary.records.push({ type, key, fields, sets });
        counts.records += 1;
      }
    }
    if (counts.bad === before) good += 1;
  };
  for await (const event of readerFor(spec).read(bytes, spec)) take(event);
  return { summary, good };
}
