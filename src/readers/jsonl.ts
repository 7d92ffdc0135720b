// JSON Lines: one row for each line that is a JSON object.
import { formatEvents } from './format-events.ts';
import { lineItems } from './json-rows.ts';
import type { Reader } from './reader.ts';

export const jsonlReader: Reader = {
  name: 'jsonl',
  read: (bytes, spec) => formatEvents(lineItems(bytes), spec),
};
