// The events of the format readers: rows as they come, records by the definition's map.
import type { ReadSpec } from '#sonar/contracts/definition.ts';
import type { ReadEvent } from '#sonar/contracts/records.ts';
import { safeSample } from '#sonar/domain/records-storable.ts';
import type { ReadItem } from './read-item.ts';
import { draftsOf } from './record-mapping.ts';

/** Rows and bad ones are counted apart. */
export async function* formatEvents(
  items: AsyncIterable<ReadItem>,
  spec: ReadSpec,
): AsyncGenerator<ReadEvent> {
  let rows = 0;
  let bad = 0;
  for await (const item of items) {
    if (item.kind === 'object') {
      yield { kind: 'row', ordinal: rows, row: item.value, records: draftsOf(item.value, spec) };
      rows += 1;
    } else if (item.kind === 'bad') {
      yield { kind: 'bad', ordinal: bad, reason: item.reason, sample: safeSample(item.text) };
      bad += 1;
    } else yield item;
  }
}
