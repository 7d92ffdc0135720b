// JSON Lines: one row for each line that is a JSON object.
import type { JsonValue, Row } from '#sonar/contracts/definition.ts';
import { safeSample, storableObject } from '#sonar/domain/records-storable.ts';
import { linesOf } from './line-stream.ts';
import { tooLong } from './lines.ts';
import type { Reader } from './reader.ts';
import { draftsOf } from './record-mapping.ts';

export const jsonlReader: Reader = {
  name: 'jsonl',
  rowFields: {},
  async *read(bytes, spec) {
    let ordinal = 0;
    let bad = 0;
    for await (const line of linesOf(bytes)) {
      if (line.kind === 'line' && line.text.trim() === '') continue;
      const parsed = line.kind === 'line' ? rowOf(line.text) : { reason: tooLong };
      if ('row' in parsed) {
        yield { kind: 'row', ordinal, row: parsed.row, records: draftsOf(parsed.row, spec) };
        ordinal += 1;
      } else {
        const sample = safeSample(line.kind === 'line' ? line.text : line.sample);
        yield { kind: 'bad', ordinal: bad, reason: parsed.reason, sample };
        bad += 1;
      }
    }
  },
};

function rowOf(text: string): { row: Row } | { reason: string } {
  let value: JsonValue;
  try {
    value = JSON.parse(text) as JsonValue;
  } catch {
    return { reason: 'the line is no JSON' };
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { reason: 'the line is JSON, but no object' };
  }
  return { row: storableObject(value) };
}
