// One step off the tree. What concerns the other steps is checked when all are read.
import type { RetrySpec, Step, Template } from '#sonar/contracts/definition.ts';
import type { Entry, FieldReading } from './field-reading.ts';
import { fieldTables } from './fields.ts';
import { readOutputs } from './read-output.ts';
import type { Place, ScalarNode } from './source-node.ts';
import type { InputDraft, PlacedTemplate, StepDraft, TemplateUse } from './step-draft.ts';
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

export function readStep(reading: FieldReading, entry: Entry, defaults: StepDefaults): StepDraft {
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
  const outputs = readOutputs(reading, fields.outputs);
  const foreach = fields.foreach === undefined ? null : reading.fields(fields.foreach, fieldTables.foreach);
  const pick = reading.text(foreach?.pick);
  const step: Step = {
    name: entry.key,
    tags: readTags(reading, fields.tags),
    needs: needs.map((need) => ({
      step: need.key,
      mode: reading.oneOf(need, ['single', 'all'] as const) ?? 'all',
    })),
    foreach: foreach === null ? null : { in: { kind: 'input', input: '' }, pick },
    inputs: inputs.map(({ spec }) => spec),
    target: template(fields.target, 'target'),
    command: readCommand(reading, fields.command, template),
    stdin: template(fields.stdin, 'stdin'),
    env: readEnv(reading, fields.env, template),
    outputs: outputs.map(({ spec }) => spec),
    okExit: readOkExit(reading, fields.okExit),
    ...readRunFields(reading, fields, defaults),
    allowOptionItems: reading.flag(fields.allowOptionItems) ?? false,
  };
  const foreachPlaces = foreach === null ? null : { in: foreach.in ?? null, pick: foreach.pick ?? null };
  return { step, entry, needs, foreach: foreachPlaces, inputs, outputs, templates };
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
    if (!/^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(entry.key)) {
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
  const written = fields.as?.node;
  const later = written?.kind === 'scalar' && ['lines', 'jsonl'].includes(written.text);
  if (fields.as && later) reading.later(fields.as, `as: ${written.text}`);
  const as = later ? null : reading.oneOf(fields.as, ['file', 'directory'] as const);
  return {
    spec: { name: entry.key, from: { step: '', output: '' }, as: as ?? 'directory' },
    entry,
    from: fields.from ?? null,
    as,
  };
}
