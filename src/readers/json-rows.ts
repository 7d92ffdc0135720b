// JSON of any form to objects, one by one, in flat memory.
import type { JsonValue, Row } from '#sonar/contracts/definition.ts';
import { storableObject } from '#sonar/domain/records-storable.ts';
import { formBytes, type JsonForm, jsonFormOf } from './json-form.ts';
import { type JsonPiece, JsonScanner } from './json-scanner.ts';
import { linesOf, maxLineBytes } from './line-stream.ts';
import { tooLong } from './lines.ts';
import { type Peeked, peek } from './peeked-source.ts';
import type { ReadItem } from './read-item.ts';

/** Objects of a file whose form is found by its beginning; of an object with an array under `wrapper`, that array's. */
export async function* jsonItems(
  bytes: AsyncIterable<Uint8Array>,
  wrapper: string | null,
): AsyncGenerator<ReadItem> {
  const source = await peek(bytes, formBytes);
  try {
    const form = jsonFormOf(source.start, source.complete, wrapper);
    if (form.kind === 'lines') yield* lineItems(source.all());
    else yield* scanItems(source, form, wrapper);
  } finally {
    await source.close();
  }
}

async function* scanItems(
  source: Peeked,
  { from, oneLine }: Extract<JsonForm, { kind: 'scan' }>,
  wrapper: string | null,
): AsyncGenerator<ReadItem> {
  for await (const line of linesOf(once(source.start.subarray(0, from))))
    if (line.kind === 'line' && line.text.trim() !== '') yield badLine(line.text);
  const scanner = new JsonScanner({ wrapper, oneLine });
  let skip = from;
  for await (const chunk of source.all()) {
    for (const piece of scanner.push(chunk.subarray(skip))) yield itemOf(piece);
    skip = 0;
  }
  const { pieces, cut } = scanner.end();
  for (const piece of pieces) yield itemOf(piece);
  if (cut) yield { kind: 'warning', message: 'the output was cut: it ends before its brackets do' };
}

/** Objects of JSON Lines; blank lines are nothing. */
export async function* lineItems(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<ReadItem> {
  for await (const line of linesOf(bytes)) {
    if (line.kind === 'too-long') yield { kind: 'bad', reason: tooLong, text: line.sample };
    else if (line.text.trim() !== '') {
      const value = parsed(line.text);
      if (value === undefined) yield badLine(line.text);
      else if (!isObject(value))
        yield { kind: 'bad', reason: 'the line is JSON, but no object', text: line.text };
      else yield { kind: 'object', value: storableObject(value), text: line.text };
    }
  }
}

const badLine = (text: string): ReadItem => ({ kind: 'bad', reason: 'the line is no JSON', text });

function itemOf(piece: JsonPiece): ReadItem {
  if (piece.kind === 'too-long')
    return { kind: 'bad', reason: `an object is longer than ${maxLineBytes} bytes`, text: piece.sample };
  const value = piece.kind === 'object' ? parsed(piece.text) : undefined;
  return isObject(value)
    ? { kind: 'object', value: storableObject(value), text: piece.text }
    : { kind: 'bad', reason: 'an element is no JSON object', text: piece.text };
}

function parsed(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

const isObject = (value: JsonValue | undefined): value is Row =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

async function* once(chunk: Buffer): AsyncGenerator<Buffer> {
  yield chunk;
}
