// Every field of the language in one place: what is checked, what the JSON Schema says and what the hints
// offer all come from here.
import { inputTypes, listForms, stepInputForms } from '#sonar/contracts/definition.ts';
import { namePattern } from '#sonar/contracts/names.ts';
import { keyForms, recordFieldPattern } from '#sonar/contracts/record-declaration.ts';
import { recordTypes } from '#sonar/contracts/records.ts';
import { readerNames } from './reader-catalog.ts';

export type Schema = { [keyword: string]: unknown };

export interface Field {
  help: string;
  schema: Schema;
  required?: true;
  /** Part of the language, but not read by this version: a definition that uses it is refused. */
  later?: true;
}
export type FieldTable = Record<string, Field>;

/** Items of one batch: they are put together in memory and on one worker's disk. */
export const maxBatchSize = 100_000;
/** Fields of one key. */
export const maxKeyFields = 8;
export const splitPattern = /^\/(0|[1-9]\d{0,2})$/;
export const variablePattern = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;

const text: Schema = { type: 'string' };
/** A scalar whose source text counts, whatever YAML makes of it. */
const scalar: Schema = { type: ['string', 'number', 'boolean'] };
const name: Schema = { type: 'string', pattern: namePattern.source };
const fieldName: Schema = { type: 'string', pattern: recordFieldPattern.source };
const whole = (minimum: number): Schema => ({ type: 'integer', minimum });
const duration: Schema = {
  type: 'string',
  pattern: '^(\\d+d)?(\\d+h)?(\\d+m)?(\\d+s)?(\\d+ms)?$',
  minLength: 2,
};
const flag: Schema = { type: 'boolean' };
const list = (items: Schema): Schema => ({ type: 'array', items });
const byName = (value: Schema): Schema => ({
  type: 'object',
  propertyNames: name,
  additionalProperties: value,
});
const later = (help: string): Field => ({ help, schema: {}, later: true });
const part = (table: string): Schema => ({ $ref: `#/$defs/${table}` });

export const fieldTables = {
  root: {
    sonar: { help: 'The version of the language: 1.', schema: { const: 1 }, required: true },
    name: { help: 'What the definition is called.', schema: name, required: true },
    inputs: { help: 'What a scan is given.', schema: byName(part('input')) },
    files: {
      help: 'Files and folders beside the definition, uploaded when it is applied: `${file.NAME}`.',
      schema: byName(text),
    },
    defaults: { help: 'Values for every step that does not set them.', schema: part('defaults') },
    records: { help: "Record types beside Sonar's own, by name.", schema: byName(part('record')) },
    scope: { help: 'What a scan may touch where it brings no scope of its own.', schema: part('scope') },
    steps: {
      help: 'The steps by name.',
      schema: { ...byName(part('step')), minProperties: 1 },
      required: true,
    },
  },
  input: {
    type: { help: 'What the value is.', schema: { enum: inputTypes }, required: true },
    required: { help: 'Whether a scan must give it.', schema: flag },
    default: { help: 'The value where a scan gives none.', schema: { anyOf: [scalar, list(scalar)] } },
    help: { help: 'A line for people.', schema: text },
  },
  defaults: {
    timeout: { help: 'How long a command may run.', schema: duration },
    retry: { help: 'Attempts after the first.', schema: { anyOf: [whole(0), part('retry')] } },
    maxConcurrent: { help: 'Tasks of one step in flight at once.', schema: whole(1) },
    image: { help: 'A hint for those who start workers.', schema: text },
    location: { help: 'A hint for those who start workers.', schema: text },
  },
  retry: {
    max: { help: 'Attempts after the first.', schema: whole(0), required: true },
    backoff: { help: 'Wait before the first retry; doubles each time.', schema: duration },
    maxBackoff: { help: 'The longest wait.', schema: duration },
  },
  scope: {
    allow: {
      help: 'Domains (with their subdomains), addresses and CIDRs.',
      schema: list(text),
      required: true,
    },
    deny: { help: 'The same, never touched: deny wins.', schema: list(text) },
  },
  step: {
    tags: {
      help: 'Workers with any of these tags may run it.',
      schema: { ...list(name), minItems: 1 },
      required: true,
    },
    needs: {
      help: 'Steps it comes after: one task for each of theirs (single), or one after all.',
      schema: byName({ enum: ['single', 'all'] }),
    },
    foreach: { help: 'One task for each item.', schema: part('foreach') },
    inputs: { help: 'Files from the steps it needs.', schema: byName(part('stepInput')) },
    target: { help: 'What is checked against the scope, item by item.', schema: text },
    command: {
      help: 'Program and arguments. There is no shell.',
      schema: { ...list(scalar), minItems: 1 },
      required: true,
    },
    stdin: { help: 'What the command reads on standard input.', schema: scalar },
    env: { help: 'Environment of the command.', schema: { type: 'object', additionalProperties: scalar } },
    secrets: {
      help: 'Secrets as environment variables: their names, or VARIABLE: NAME.',
      schema: {
        anyOf: [
          list(name),
          { type: 'object', propertyNames: { pattern: variablePattern.source }, additionalProperties: name },
        ],
      },
    },
    outputs: { help: 'Files that the command leaves.', schema: byName(part('output')) },
    okExit: {
      help: 'Exit codes that count as success; 0 where none is given.',
      schema: { anyOf: [whole(0), list(whole(0))] },
    },
    timeout: { help: 'How long the command may run.', schema: duration },
    retry: { help: 'Attempts after the first.', schema: { anyOf: [whole(0), part('retry')] } },
    maxConcurrent: { help: 'Tasks of the step in flight at once.', schema: whole(1) },
    allowOptionItems: { help: 'Lets an item become an argument that starts with "-".', schema: flag },
    image: { help: 'A hint for those who start workers.', schema: text },
    location: { help: 'A hint for those who start workers.', schema: text },
    run: later('A run of cases instead of a command.'),
  },
  foreach: {
    in: { help: 'inputs.NAME, or STEP.OUTPUT of a step it needs.', schema: text, required: true },
    pick: { help: 'A field of the row: the item is its value.', schema: text },
    unique: { help: 'Each item once within the scan.', schema: flag },
    group: {
      help: 'One item for all rows with the same value of this field; the other fields are lists.',
      schema: text,
    },
    batch: {
      help: 'So many items a task, in the file `${batch}`.',
      schema: { ...whole(1), maximum: maxBatchSize },
    },
    split: {
      help: 'Larger networks are split into ones of this size, as `/24`.',
      schema: { type: 'string', pattern: splitPattern.source },
    },
    as: {
      help: 'How a batch is written: lines or JSON Lines. `directory`: each file of the output is an item.',
      schema: { enum: listForms },
    },
  },
  stepInput: {
    from: { help: 'STEP.OUTPUT of a step it needs, or inputs.NAME.', schema: text, required: true },
    as: {
      help: 'The file as it is, one file of lines or JSON Lines, or a directory with a folder for each task.',
      schema: { enum: stepInputForms },
    },
    pick: { help: 'A field of each row: the lines are its values.', schema: text },
    unique: { help: 'Each line once.', schema: flag },
  },
  output: {
    path: { help: 'The file, relative to the output folder.', schema: text },
    stdout: { help: 'True: the standard output is the file.', schema: flag },
    read: { help: 'How the file becomes records.', schema: { anyOf: [{ enum: readerNames }, part('read')] } },
    optional: { help: 'Whether the command may leave it out.', schema: flag },
  },
  record: {
    key: {
      help: 'The fields that tell two records apart.',
      schema: { ...list(fieldName), minItems: 1, maxItems: maxKeyFields },
      required: true,
    },
    normalize: {
      help: 'Fields of the key that have one spelling: domain, address, host, url or lower.',
      schema: {
        type: 'object',
        propertyNames: { pattern: recordFieldPattern.source },
        additionalProperties: { enum: keyForms },
      },
    },
  },
  read: {
    format: { help: 'The reader.', schema: { enum: readerNames }, required: true },
    record: {
      help: "The record that each row makes: a type of Sonar's own, or one under `records`.",
      schema: { anyOf: [{ enum: recordTypes }, name] },
    },
    fields: {
      help: 'Field of the record: field of the row, as a dotted path.',
      schema: { type: 'object', additionalProperties: text },
    },
  },
} as const satisfies Record<string, FieldTable>;
