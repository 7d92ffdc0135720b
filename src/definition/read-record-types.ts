// `records`: types that the definition declares beside Sonar's own.
import {
  type KeyForm,
  keyForms,
  type RecordDeclaration,
  recordFieldPattern,
} from '#sonar/contracts/record-declaration.ts';
import { recordTypes } from '#sonar/contracts/records.ts';
import type { Entry, FieldReading } from './field-reading.ts';
import { fieldTables, maxKeyFields } from './fields.ts';
import { meantHint } from './nearest-name.ts';

export function readRecordTypes(
  reading: FieldReading,
  place: Entry | undefined,
): Record<string, RecordDeclaration> {
  const declared: [string, RecordDeclaration][] = [];
  for (const entry of reading.named(place, 'a record type')) {
    if (recordTypes.some((own) => own === entry.key))
      reading.problems.add(
        entry.path,
        entry.keyAt,
        `\`${entry.key}\` is a record type of Sonar's own`,
        'give yours another name',
      );
    const fields = reading.fields(entry, fieldTables.record);
    const key = readKey(reading, fields.key);
    declared.push([entry.key, { key, normalize: readNormalize(reading, fields.normalize, key) }]);
  }
  return Object.fromEntries(declared);
}

function readKey(reading: FieldReading, place: Entry | undefined): string[] {
  const key: string[] = [];
  const items = place === undefined ? null : reading.list(place);
  if (place !== undefined && items !== null && (items.length === 0 || items.length > maxKeyFields))
    reading.fault(place, `a key has 1 to ${maxKeyFields} fields, not ${items.length}`);
  for (const item of items ?? []) {
    const field = reading.text(item);
    if (field === null) continue;
    if (!recordFieldPattern.test(field))
      reading.fault(
        item,
        `\`${field}\` cannot be the name of a record's field`,
        'a letter, then letters, digits and _',
      );
    else if (key.includes(field)) reading.fault(item, `the key has the field \`${field}\` twice`);
    else key.push(field);
  }
  return key;
}

function readNormalize(
  reading: FieldReading,
  place: Entry | undefined,
  key: readonly string[],
): Record<string, KeyForm> {
  const forms: [string, KeyForm][] = [];
  for (const entry of place === undefined ? [] : (reading.entries(place) ?? [])) {
    if (!key.includes(entry.key))
      reading.problems.add(
        entry.path,
        entry.keyAt,
        `\`${entry.key}\` is no field of the key`,
        meantHint(entry.key, key),
      );
    const form = reading.oneOf(entry, keyForms);
    if (form !== null) forms.push([entry.key, form]);
  }
  return Object.fromEntries(forms);
}
