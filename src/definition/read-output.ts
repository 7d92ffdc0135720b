// `outputs`: where the files are and how they become records.

import type { ReadSpec } from '#sonar/contracts/definition.ts';
import { recordFieldPattern } from '#sonar/contracts/record-declaration.ts';
import type { RecordTypes } from '#sonar/domain/records-declared.ts';
import type { Entry, FieldReading } from './field-reading.ts';
import { fieldTables } from './fields.ts';
import { meantHint, nearestName } from './nearest-name.ts';
import { readerEntry, readerNames } from './reader-catalog.ts';
import type { Place } from './source-node.ts';
import type { OutputDraft } from './step-draft.ts';

export function readOutputs(
  reading: FieldReading,
  place: Entry | undefined,
  types: RecordTypes,
): OutputDraft[] {
  const drafts = reading.named(place, 'an output').map((entry) => readOutput(reading, entry, types));
  for (const [index, { spec, entry }] of drafts.entries()) {
    const other = drafts.slice(0, index).find((earlier) => clash(earlier.spec.path, spec.path));
    if (other === undefined) continue;
    const where = spec.path === null ? 'the standard output' : `the path \`${spec.path}\``;
    reading.problems.add(
      entry.path,
      entry.keyAt,
      `\`${entry.key}\` and \`${other.spec.name}\` share ${where}`,
    );
  }
  return drafts;
}

/** The same file, or one the folder of the other. Null is the standard output. */
function clash(a: string | null, b: string | null): boolean {
  if (a === null || b === null) return a === b;
  return a === b || a.startsWith(`${b}/`) || b.startsWith(`${a}/`);
}

function readOutput(reading: FieldReading, entry: Entry, types: RecordTypes): OutputDraft {
  const fields = reading.fields(entry, fieldTables.output);
  const stdout = reading.flag(fields.stdout) ?? false;
  const path = readPath(reading, fields.path);
  if (entry.node.kind === 'map' && (fields.path !== undefined) === stdout) {
    const message = stdout
      ? `\`${entry.key}\` has both a path and stdout`
      : `\`${entry.key}\` has neither a path nor stdout`;
    reading.problems.add(entry.path, entry.keyAt, message, 'write `path: FILE` or `stdout: true`');
  }
  return {
    spec: {
      name: entry.key,
      // A path that is missing or wrong is a fault already: the name keeps it from clashing with others.
      path: stdout ? null : (path ?? `?${entry.key}`),
      read: fields.read === undefined ? null : readReadSpec(reading, fields.read, types),
      optional: reading.flag(fields.optional) ?? false,
    },
    entry,
  };
}

function readPath(reading: FieldReading, place: Entry | undefined): string | null {
  const text = reading.text(place);
  if (place === undefined || text === null) return null;
  const fault = pathFault(text);
  return fault === null
    ? text
    : reading.fault(place, `\`${text}\` ${fault}`, 'write a path below the output folder, as `out/scan.xml`');
}

/** UTF-8 bytes of one name in a path; file systems refuse longer ones. */
const maxNameBytes = 255;

function pathFault(path: string): string | null {
  if (path.startsWith('/')) return 'is an absolute path';
  const names = path.split('/');
  if (names.includes('..')) return 'leaves the output folder';
  if (names.includes('') || names.includes('.')) return 'has an empty part';
  if (/[\u0000-\u001f\u007f\\]/.test(path)) return 'holds a backslash or a control character';
  if (path.includes('${')) return 'holds a template; paths are fixed';
  if (names.some((name) => Buffer.byteLength(name) > maxNameBytes) || path.length > 1024)
    return 'is too long';
  return null;
}

function readReadSpec(reading: FieldReading, place: Entry, types: RecordTypes): ReadSpec | null {
  if (place.node.kind !== 'map') {
    const reader = readReader(reading, place);
    return reader === null ? null : { reader, record: null, fields: {} };
  }
  const fields = reading.fields(place, fieldTables.read);
  const reader = fields.format === undefined ? null : readReader(reading, fields.format);
  const record = reading.oneOf(fields.record, Object.keys(types));
  const map = fields.fields === undefined ? null : readFieldMap(reading, fields.fields, reader);
  if (reader === null) return null;
  if (readerEntry(reader)?.ownRecords && (fields.record ?? fields.fields) !== undefined) {
    return reading.fault(
      fields.record ?? place,
      `the reader \`${reader}\` makes its own records`,
      `write \`read: ${reader}\``,
    );
  }
  if (fields.fields !== undefined && fields.record === undefined) {
    return reading.fault(
      fields.fields,
      '`fields` without `record`',
      `name the record: ${Object.keys(types).join(', ')}`,
    );
  }
  if (record === null) return { reader, record: null, fields: {} };
  const keyFields = types[record]?.required ?? [];
  const mapped = map ?? defaultMap(reader, keyFields);
  for (const field of keyFields) {
    if (mapped !== null && !Object.hasOwn(mapped, field)) {
      reading.fault(
        fields.fields ?? place,
        `the record \`${record}\` needs the field \`${field}\``,
        `add \`${field}: ROW FIELD\` under \`fields\``,
      );
    }
  }
  return { reader, record, fields: mapped ?? {} };
}

function readReader(reading: FieldReading, place: Place): string | null {
  const name = reading.text(place);
  if (name === null || readerEntry(name) !== null) return name;
  const near = readerNames.find((known) => known.startsWith(`${name}-`)) ?? nearestName(name, readerNames);
  const hint =
    near === null ? `this version of Sonar reads ${readerNames.join(', ')}` : `did you mean \`${near}\`?`;
  return reading.fault(place, `there is no reader \`${name}\``, hint);
}

/** Null: the row's fields under their own names. A line is the one thing that makes an address or a URL. */
export function defaultMap(reader: string, keyFields: readonly string[]): Record<string, string> | null {
  if (reader !== 'lines') return null;
  const [only, ...rest] = keyFields;
  return rest.length === 0 && only !== undefined ? { [only]: 'line' } : {};
}

function readFieldMap(reading: FieldReading, place: Entry, reader: string | null): Record<string, string> {
  const rowFields = reader === null ? null : readerEntry(reader)?.rowFields;
  const pairs: [string, string][] = [];
  for (const entry of reading.entries(place) ?? []) {
    if (!recordFieldPattern.test(entry.key)) {
      reading.problems.add(
        entry.path,
        entry.keyAt,
        `\`${entry.key}\` cannot be the name of a record's field`,
        'a letter, then letters, digits and _',
      );
    }
    const source = reading.text(entry);
    if (source === null) continue;
    if (source.split('.').includes(''))
      reading.fault(entry, `\`${source}\` is no path of row fields`, 'write `info.name`');
    else if (rowFields && !Object.hasOwn(rowFields, source)) {
      reading.fault(
        entry,
        `rows of \`${reader}\` have no field \`${source}\``,
        meantHint(source, Object.keys(rowFields)),
      );
    }
    pairs.push([entry.key, source]);
  }
  return Object.fromEntries(pairs);
}
