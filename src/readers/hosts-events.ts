import type { Row } from '#sonar/contracts/definition.ts';
import type { ReadEvent, RecordDraft } from '#sonar/contracts/records.ts';
import { safeSample } from '#sonar/domain/records-storable.ts';

/** Events that wait to be taken, each kind with its own ordinals. */
export class HostsEvents {
  #events: ReadEvent[] = [];
  #rows = 0;
  #records = 0;
  #bad = 0;

  take(): ReadEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  warn(message: string): void {
    this.#events.push({ kind: 'warning', message });
  }

  bad(reason: string, sample: string): void {
    this.#events.push({ kind: 'bad', ordinal: this.#bad, reason, sample: safeSample(sample) });
    this.#bad += 1;
  }

  row(row: Row, records: RecordDraft[]): void {
    this.#events.push({ kind: 'row', ordinal: this.#rows, row, records });
    this.#rows += 1;
  }

  records(records: RecordDraft[]): void {
    this.#events.push({ kind: 'records', ordinal: this.#records, records });
    this.#records += 1;
  }
}
