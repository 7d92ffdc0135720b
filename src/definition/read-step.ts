// One step off the tree. What concerns the other steps is checked when all are read.
import {
  listForms,
  type RetrySpec,
  type Step,
  stepInputForms,
  type Template,
} from '#sonar/contracts/definition.ts';
import { namePattern } from '#sonar/contracts/names.ts';
import type { RecordTypes } from '#sonar/domain/records-declared.ts';
import type { Entry, FieldReading } from './field-reading.ts';
import { fieldTables, maxBatchSize, splitPattern, variablePattern } from './fields.ts';
import { readOutputs } from './read-output.ts';
import type { Place, ScalarNode } from './source-node.ts';
import type { ForeachDraft, InputDraft, PlacedTemplate, StepDraft, TemplateUse } from './step-draft.ts';
import { parseTemplate } from './template.ts';

/** What a step does not say. */
export interface StepDefaults {
  timeoutMs: number;
  retry: RetrySpec;
  maxConcurrent: number | null;
  image: string | null;
  location: string | null;
}

export const builtInDefaults: StepDefaults = {
  timeoutMs: 3_600_000,
  retry: { max: 0, backoffMs: 30_000, maxBackoffMs: 600_000 },
  maxConcurrent: null,
  image: null,
  location: null,
};

const maxRetries = 1_000;
const maxConcurrentLimit = 1_000_000;

type RunFields = Partial<Record<keyof typeof fieldTables.defaults, Entry>>;

/** The fields that a step and `defaults` share. */
export function readRunFields(
  reading: FieldReading,
  fields: RunFields,
  defaults: StepDefaults,
): StepDefaults {
  return {
    timeoutMs: reading.duration(fields.timeout) ?? defaults.timeoutMs,
    retry: readRetry(reading, fields.retry, defaults.retry),
    maxConcurrent: reading.whole(fields.maxConcurrent, 1, maxConcurrentLimit) ?? defaults.maxConcurrent,
    image: reading.text(fields.image) ?? defaults.image,
    location: reading.text(fields.location) ?? defaults.location,
  };
}

function readRetry(reading: FieldReading, place: Entry | undefined, defaults: RetrySpec): RetrySpec {
  if (place === undefined) return defaults;
  if (place.node.kind !== 'map') {
    return { ...defaults, max: reading.whole(place, 0, maxRetries) ?? defaults.max };
  }
  const fields = reading.fields(place, fieldTables.retry);
  const backoffMs = reading.duration(fields.backoff) ?? defaults.backoffMs;
  const maxBackoffMs = reading.duration(fields.maxBackoff) ?? Math.max(backoffMs, defaults.maxBackoffMs);
  if (maxBackoffMs < backoffMs) {
    reading.fault(fields.maxBackoff ?? place, '`maxBackoff` is shorter than `backoff`');
  }
  return { max: reading.whole(fields.max, 0, maxRetries) ?? defaults.max, backoffMs, maxBackoffMs };
}

export function readStep(
  reading: FieldReading,
  entry: Entry,
  defaults: StepDefaults,
  types: RecordTypes,
): StepDraft {
  const fields = reading.fields(entry, fieldTables.step);
  const templates: PlacedTemplate[] = [];
  const template = (place: Place | undefined, use: TemplateUse): Template | null => {
    const scalar = place === undefined ? null : reading.scalar(place);
    if (scalar === null) return null;
    const placed = placeTemplate(reading, scalar, use);
    templates.push(placed);
    return placed.template;
  };
  if (entry.key === 'inputs') {
    reading.problems.add(
      entry.path,
      entry.keyAt,
      'a step cannot be called `inputs`',
      '`inputs.NAME` means the inputs of the scan',
    );
  }
  const needs = reading.named(fields.needs, 'a step');
  const inputs = reading.named(fields.inputs, 'an input').map((input) => readInput(reading, input));
  const outputs = readOutputs(reading, fields.outputs, types);
  const foreach = fields.foreach === undefined ? null : readForeach(reading, fields.foreach);
  const env = readEnv(reading, fields.env, template);
  const step: Step = {
    name: entry.key,
    tags: readTags(reading, fields.tags),
    needs: needs.map((need) => ({
      step: need.key,
      mode: reading.oneOf(need, ['single', 'all'] as const) ?? 'all',
    })),
    foreach: foreach?.spec ?? null,
    inputs: inputs.map(({ spec }) => spec),
    target: template(fields.target, 'target'),
    command: readCommand(reading, fields.command, template),
    stdin: template(fields.stdin, 'stdin'),
    env,
    secrets: readSecrets(reading, fields.secrets, env),
    outputs: outputs.map(({ spec }) => spec),
    okExit: readOkExit(reading, fields.okExit),
    ...readRunFields(reading, fields, defaults),
    allowOptionItems: reading.flag(fields.allowOptionItems) ?? false,
  };
  return { step, entry, needs, foreach: foreach?.draft ?? null, inputs, outputs, templates };
}

function readForeach(
  reading: FieldReading,
  entry: Entry,
): { spec: NonNullable<Step['foreach']>; draft: ForeachDraft } {
  const fields = reading.fields(entry, fieldTables.foreach);
  const size = reading.whole(fields.batch, 1, maxBatchSize);
  const form = reading.oneOf(fields.as, listForms);
  return {
    spec: {
      in: { kind: 'input', input: '' },
      pick: reading.text(fields.pick),
      unique: reading.flag(fields.unique) ?? false,
      group: reading.text(fields.group),
      batch: size === null ? null : { size, as: form ?? 'lines' },
      split: readSplit(reading, fields.split),
      files: false,
    },
    draft: {
      entry,
      in: fields.in ?? null,
      pick: fields.pick ?? null,
      unique: fields.unique ?? null,
      group: fields.group ?? null,
      batch: fields.batch ?? null,
      split: fields.split ?? null,
      as: fields.as ?? null,
      form,
    },
  };
}

/** The longest prefix there is, of IPv6. */
const maxPrefix = 128;

function readSplit(reading: FieldReading, place: Entry | undefined): number | null {
  const text = reading.text(place);
  if (place === undefined || text === null) return null;
  const prefix = splitPattern.test(text) ? Number(text.slice(1)) : Number.NaN;
  if (prefix <= maxPrefix) return prefix;
  const hint = /^\d+$/.test(text) ? `write \`/${text}\`` : 'write the length of the prefix, as `/24`';
  return reading.fault(place, `\`${text}\` is no size of a network`, hint);
}

/** `[shodan-key]` gives SHODAN_KEY; `{API_KEY: shodan-key}` names the variable. */
function readSecrets(
  reading: FieldReading,
  place: Entry | undefined,
  env: Readonly<Record<string, Template>>,
): Record<string, string> {
  const secrets: [string, string][] = [];
  const add = (variable: string, secret: string | null, at: Place): void => {
    if (secret === null) return;
    if (variable.startsWith('SONAR_')) {
      reading.fault(at, `\`${variable}\`: names with SONAR_ are Sonar's own`, 'write `{VARIABLE: NAME}`');
    } else if (Object.hasOwn(env, variable) || secrets.some(([other]) => other === variable)) {
      reading.fault(at, `the variable \`${variable}\` is set twice`, 'write `{VARIABLE: NAME}`');
    } else secrets.push([variable, secret]);
  };
  if (place?.node.kind === 'list') {
    for (const item of reading.list(place) ?? []) {
      const secret = reading.name(item, 'a secret');
      add(secret?.toUpperCase().replaceAll('-', '_') ?? '', secret, item);
    }
    return Object.fromEntries(secrets);
  }
  for (const entry of place === undefined ? [] : (reading.entries(place) ?? [])) {
    if (!variablePattern.test(entry.key)) {
      const hint = namePattern.test(entry.key) ? `write \`[${entry.key}]\` or \`{VARIABLE: NAME}\`` : null;
      reading.problems.add(
        entry.path,
        entry.keyAt,
        `\`${entry.key}\` cannot be the name of a variable`,
        hint,
      );
    } else add(entry.key, reading.name(entry, 'a secret'), entry);
  }
  return Object.fromEntries(secrets);
}

function placeTemplate(
  reading: FieldReading,
  { node, path }: Place<ScalarNode>,
  use: TemplateUse,
): PlacedTemplate {
  const { parts, faults } = parseTemplate(node.text);
  const at = (index: number): number => (node.textAt === null ? node.at : node.textAt + index);
  for (const { index, message, hint } of faults) reading.problems.add(path, at(index), message, hint);
  return {
    use,
    path,
    template: parts.map(({ part }) => part),
    parts: parts.map(({ part, index }) => ({ part, at: at(index) })),
  };
}

function readTags(reading: FieldReading, place: Entry | undefined): string[] {
  const places = place === undefined ? null : reading.list(place);
  if (place !== undefined && places?.length === 0) {
    reading.fault(place, '`tags` is empty', 'name at least one tag of the workers that may run the step');
  }
  const tags = (places ?? []).map((tag) => reading.name(tag, 'a tag')).filter((tag) => tag !== null);
  return [...new Set(tags)];
}

function readCommand(
  reading: FieldReading,
  place: Entry | undefined,
  template: (place: Place, use: TemplateUse) => Template | null,
): Template[] {
  if (place?.node.kind === 'scalar' && !place.node.isNull) {
    reading.fault(
      place,
      '`command` must be a list of arguments',
      'there is no shell: write `[nmap, -p, "80,443"]`',
    );
    return [];
  }
  const places = place === undefined ? null : reading.list(place);
  if (place !== undefined && places?.length === 0)
    reading.fault(place, '`command` is empty', 'name the program first');
  reportSplitNumbers(reading, places ?? []);
  const command = (places ?? []).map((item, index) => template(item, index === 0 ? 'program' : 'argument'));
  const [program] = places ?? [];
  if (program?.node.kind === 'scalar' && program.node.text === '')
    reading.fault(program, 'the program is empty');
  return command.filter((argument) => argument !== null);
}

/** `[nmap, -p, 80,443]` is four arguments to YAML; between digits that is never what was meant. */
function reportSplitNumbers(reading: FieldReading, places: readonly Place[]): void {
  for (const [index, place] of places.entries()) {
    const next = places[index + 1]?.node;
    const { node } = place;
    if (node.kind !== 'scalar' || next?.kind !== 'scalar' || node.textAt === null || next.textAt === null)
      continue;
    const touching = node.textAt + node.text.length + 1 === next.textAt;
    if (touching && /\d$/.test(node.text) && /^\d/.test(next.text)) {
      const written = `${node.text},${next.text}`;
      reading.fault(place, `inside [ ] \`${written}\` is two arguments`, `quote it: "${written}"`);
    }
  }
}

function readEnv(
  reading: FieldReading,
  place: Entry | undefined,
  template: (place: Place, use: TemplateUse) => Template | null,
): Record<string, Template> {
  const env: Record<string, Template> = {};
  for (const entry of place === undefined ? [] : (reading.entries(place) ?? [])) {
    if (!variablePattern.test(entry.key)) {
      reading.problems.add(entry.path, entry.keyAt, `\`${entry.key}\` cannot be the name of a variable`);
      continue;
    }
    if (entry.key.startsWith('SONAR_')) {
      reading.problems.add(entry.path, entry.keyAt, `\`${entry.key}\`: names with SONAR_ are Sonar's own`);
    }
    const value = template(entry, 'env');
    if (value !== null) env[entry.key] = value;
  }
  return env;
}

function readOkExit(reading: FieldReading, place: Entry | undefined): number[] {
  if (place === undefined) return [0];
  const places = place.node.kind === 'list' ? (reading.list(place) ?? []) : [place];
  if (places.length === 0) reading.fault(place, '`okExit` is empty', 'write `okExit: [0]`, or leave it out');
  const codes = places.map((code) => reading.whole(code, 0, 255)).filter((code) => code !== null);
  return [...new Set(codes)];
}

function readInput(reading: FieldReading, entry: Entry): InputDraft {
  const fields = reading.fields(entry, fieldTables.stepInput);
  const as = reading.oneOf(fields.as, stepInputForms);
  return {
    spec: {
      name: entry.key,
      from: { kind: 'input', input: '' },
      as: as ?? 'file',
      pick: reading.text(fields.pick),
      unique: reading.flag(fields.unique) ?? false,
    },
    entry,
    from: fields.from ?? null,
    pick: fields.pick ?? null,
    unique: fields.unique ?? null,
    as,
    asPlace: fields.as ?? entry,
  };
}
