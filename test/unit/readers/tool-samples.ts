// The samples of tools' output in test/fixtures/readers, each named after its reader: `httpx-1.2.jsonl`.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ReadEvent } from '#sonar/contracts/records.ts';
import { recordKey } from '#sonar/domain/records.ts';

const folder = join(__dirname, '../../fixtures/readers');
/** Those of tools; other files belong to the examples of the docs. */
export const sampleFiles = readdirSync(folder)
  .filter((file) => file !== 'hosts.csv')
  .toSorted();

export const sample = (file: string): Buffer => readFileSync(join(folder, file));

export function readerOfSample(file: string): string {
  const name = /^[a-z]+/.exec(file)?.[0] ?? '';
  return name === 'nmap' ? 'nmap-xml' : name;
}

/** `TYPE KEY` of every record, in the order they come; a record without a key shows why. */
export const keysOf = (events: readonly ReadEvent[]): string[] =>
  events.flatMap((event) =>
    event.kind === 'row' || event.kind === 'records'
      ? event.records.map((draft) => {
          const keyed = recordKey(draft);
          return keyed.ok ? `${keyed.type} ${keyed.key}` : `refused: ${keyed.reason}`;
        })
      : [],
  );
