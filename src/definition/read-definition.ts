// The whole text off the tree: header, inputs, defaults, scope and steps.
import {
  type FileSpec,
  type InputSpec,
  inputTypes,
  listInputTypes,
  type Scope,
} from '#sonar/contracts/definition.ts';
import type { RecordDeclaration } from '#sonar/contracts/record-declaration.ts';
import { knownTypes } from '#sonar/domain/records-declared.ts';
import { parseScope } from '#sonar/domain/scope.ts';
import type { Entry, FieldReading } from './field-reading.ts';
import { fieldTables } from './fields.ts';
import { inputFault } from './input-values.ts';
import { readRecordTypes } from './read-record-types.ts';
import { builtInDefaults, readRunFields, readStep, type StepDefaults } from './read-step.ts';
import type { Place, SourceNode } from './source-node.ts';
import type { StepDraft } from './step-draft.ts';

export interface DefinitionDraft {
  name: string;
  inputs: Record<string, InputSpec>;
  files: Record<string, FileSpec>;
  scope: Scope | null;
  records: Record<string, RecordDeclaration>;
  steps: StepDraft[];
}

export function readDefinition(reading: FieldReading, root: SourceNode): DefinitionDraft {
  const place = { node: root, path: '' };
  if (root.kind !== 'map') {
    reading.fault(place, 'a definition is a mapping of fields', 'begin with `sonar: 1`');
    return { name: '', inputs: {}, files: {}, scope: null, records: {}, steps: [] };
  }
  const fields = reading.fields(place, fieldTables.root);
  const version = reading.text(fields.sonar);
  if (fields.sonar !== undefined && version !== null && version !== '1') {
    reading.fault(fields.sonar, `there is no language version \`${version}\``, 'write `sonar: 1`');
  }
  const defaults = readDefaults(reading, fields.defaults);
  const records = readRecordTypes(reading, fields.records);
  const types = knownTypes(records);
  const steps = reading
    .named(fields.steps, 'a step')
    .map((entry) => readStep(reading, entry, defaults, types));
  if (fields.steps?.node.kind === 'map' && fields.steps.node.entries.length === 0) {
    reading.fault(fields.steps, 'the definition has no steps');
  }
  return {
    name: reading.name(fields.name, 'a definition') ?? '',
    inputs: readInputs(reading, fields.inputs),
    files: readFiles(reading, fields.files),
    scope: readScope(reading, fields.scope),
    records,
    steps,
  };
}

const readDefaults = (reading: FieldReading, place: Entry | undefined): StepDefaults =>
  place === undefined
    ? builtInDefaults
    : readRunFields(reading, reading.fields(place, fieldTables.defaults), builtInDefaults);

function readInputs(reading: FieldReading, place: Entry | undefined): Record<string, InputSpec> {
  return Object.fromEntries(
    reading.named(place, 'an input').map((entry) => [entry.key, readInput(reading, entry)]),
  );
}

function readInput(reading: FieldReading, entry: Entry): InputSpec {
  const fields = reading.fields(entry, fieldTables.input);
  const type = reading.oneOf(fields.type, inputTypes);
  const required = reading.flag(fields.required) ?? false;
  const value = fields.default === undefined ? null : readDefault(reading, fields.default);
  if (fields.default !== undefined && required) {
    reading.fault(
      fields.default,
      'an input that is required has no use for a default',
      'drop one of the two',
    );
  }
  if (fields.default !== undefined && type !== null && value !== null) {
    const list = listInputTypes.includes(type);
    const fault =
      !list && fields.default.node.kind === 'list'
        ? 'is a list, but the type is none'
        : type === 'file'
          ? 'has no place: a file is given at the start'
          : inputFault(type, value);
    if (fault !== null) reading.fault(fields.default, `the default of \`${entry.key}\` ${fault}`);
  }
  return { type: type ?? 'text', required, default: value, help: reading.text(fields.help) };
}

/** Whether a path is a file or a folder is known when it is uploaded. */
function readFiles(reading: FieldReading, place: Entry | undefined): Record<string, FileSpec> {
  const files: [string, FileSpec][] = [];
  for (const entry of reading.named(place, 'a file')) {
    const path = reading.text(entry);
    if (path === null) continue;
    if (path === '') reading.fault(entry, `the path of \`${entry.key}\` is empty`);
    else if (path.includes('${')) reading.fault(entry, `\`${path}\` holds a template; paths are fixed`);
    files.push([entry.key, { path, kind: 'file', digest: '' }]);
  }
  return Object.fromEntries(files);
}

/** One text, or a list of lines. */
function readDefault(reading: FieldReading, place: Place): string | null {
  if (place.node.kind !== 'list') return reading.text(place);
  return (reading.list(place) ?? [])
    .map((line) => reading.text(line))
    .filter((line) => line !== null)
    .join('\n');
}

function readScope(reading: FieldReading, place: Entry | undefined): Scope | null {
  if (place === undefined) return null;
  const fields = reading.fields(place, fieldTables.scope);
  const sides = { allow: readSide(reading, fields.allow), deny: readSide(reading, fields.deny) };
  const texts = (side: ScopeEntry[]): string[] => side.map(({ text }) => text);
  const scope = { allow: texts(sides.allow), deny: texts(sides.deny) };
  const parsed = parseScope(scope);
  for (const { path, message, hint } of parsed.ok ? [] : parsed.problems) {
    const [, side, index] = /^(allow|deny)\[(\d+)\]$/.exec(path) ?? [];
    const at = side === undefined ? fields.allow : sides[side as keyof Scope][Number(index)]?.place;
    if (at !== undefined) reading.fault(at, message, hint);
  }
  return scope;
}

interface ScopeEntry {
  text: string;
  place: Place;
}

const readSide = (reading: FieldReading, place: Entry | undefined): ScopeEntry[] =>
  (place === undefined ? [] : (reading.list(place) ?? []))
    .map((entry) => ({ text: reading.text(entry), place: entry }))
    .filter((entry): entry is ScopeEntry => entry.text !== null);
