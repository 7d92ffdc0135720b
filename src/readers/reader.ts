// What a reader is: bytes to rows and records, in flat memory, whatever the bytes hold.
import type { ReadSpec } from '#sonar/contracts/definition.ts';
import type { ReadEvent } from '#sonar/contracts/records.ts';
import type { ReaderName } from '#sonar/definition/reader-catalog.ts';

export interface Reader {
  name: ReaderName;
  /**
   * Never throws for what the bytes hold: bad records and broken ends are events. Faults of the byte source
   * pass through. Rows and records are storable (see `domain/records-storable.ts`).
   */
  read(bytes: AsyncIterable<Uint8Array>, spec: ReadSpec): AsyncIterable<ReadEvent>;
}
