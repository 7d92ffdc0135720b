// Reads bytes by a reader, cut into chunks of any size, and gathers the events.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ReadSpec } from '#sonar/contracts/definition.ts';
import type { ReadEvent } from '#sonar/contracts/records.ts';
import { readerFor } from '#sonar/readers/registry.ts';

async function* chunksOf(bytes: Uint8Array, chunkSize: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += chunkSize) yield bytes.slice(at, at + chunkSize);
}

export async function eventsOf(
  content: string | Uint8Array,
  spec: Partial<ReadSpec> & { reader: string },
  chunkSize = 65_536,
): Promise<ReadEvent[]> {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  const full: ReadSpec = { record: null, fields: {}, ...spec };
  const events: ReadEvent[] = [];
  for await (const event of readerFor(full).read(chunksOf(bytes, chunkSize), full)) events.push(event);
  return events;
}

export const caseFile = (name: string): Buffer => readFileSync(join(__dirname, '../../fixtures/cases', name));

/** The events of one kind. */
export const only = <Kind extends ReadEvent['kind']>(
  events: readonly ReadEvent[],
  kind: Kind,
): Extract<ReadEvent, { kind: Kind }>[] =>
  events.filter((event): event is Extract<ReadEvent, { kind: Kind }> => event.kind === kind);
