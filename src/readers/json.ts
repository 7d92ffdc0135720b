// JSON in any form: an array of objects, objects one after another, one a line or printed over many.
import { formatEvents } from './format-events.ts';
import { jsonItems } from './json-rows.ts';
import type { Reader } from './reader.ts';

export const jsonReader: Reader = {
  name: 'json',
  read: (bytes, spec) => formatEvents(jsonItems(bytes, null), spec),
};
