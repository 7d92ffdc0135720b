// One step, one item, here: rendered, run and read by the same rules as in a scan, and told to its author.
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import type { Definition, JsonValue, Step } from '#sonar/contracts/definition.ts';
import { failureCodes } from '#sonar/contracts/failure-codes.ts';
import { type GivenInput, resolveInputs } from '#sonar/definition/input-values.ts';
import { knownTypes } from '#sonar/domain/records-declared.ts';
import { renderCommand } from '#sonar/domain/render.ts';
import type { ParsedScope } from '#sonar/domain/scope.ts';
import { dispatchedInputs } from '#sonar/domain/step-inputs.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import type { Logger } from '#sonar/platform/logger.ts';
import { type ReadSummary, summarizeReading } from '#sonar/readers/read-summary.ts';
import { runTrial, type TrialEnd } from '#sonar/worker/trial.ts';
import type { GivenOutputs } from './given-files.ts';
import { makeTrialInputs } from './trial-inputs.ts';
import { chooseItem } from './trial-items.ts';

export interface TryRequest {
  definition: Definition;
  definitionFolder: string;
  step: Step;
  inputs: Readonly<Record<string, GivenInput>>;
  inputFiles: ReadonlyMap<string, string>;
  scope: ParsedScope;
  items: readonly string[];
  given: GivenOutputs;
  environment: Readonly<Record<string, string | undefined>>;
  /** Records, rows and bad ones that are kept of each file. */
  limit: number;
}

export interface TriedFile extends ReadSummary {
  output: string;
  path: string;
  size: number;
  /** Null: nothing reads it. */
  reader: string | null;
  /** It has bad records and no good one: in a scan its result would be poisoned. */
  poisoned: boolean;
}

export interface Tried {
  step: string;
  item: JsonValue | null;
  outcome: TrialEnd['outcome'] | 'refused' | 'no_work';
  failure: TrialEnd['failure'];
  argv: string[];
  exitCode: number | null;
  signal: string | null;
  durationMs: number;
  stdout: string;
  stderr: string;
  /** Lines that were kept out of input files, and why. */
  refused: string[];
  files: TriedFile[];
}

/** @throws SonarError `usage` or `invalid` where what is given does not do. @param directory of the trial's own */
export async function tryStep(
  request: TryRequest,
  directory: string,
  log: Logger,
  signal: AbortSignal,
): Promise<Tried> {
  const { definition, step, scope } = request;
  const inputs = inputValues(request);
  const secrets = secretsOf(step, request.environment);
  const chosen = await chooseItem(definition, step, { inputs, scope }, request.items, request.given);
  const nothing = { step: step.name, argv: [], exitCode: null, signal: null, durationMs: 0 };
  const silent = { stdout: '', stderr: '', refused: [], files: [] };
  const refused = (item: JsonValue, reason: string): Tried => ({
    ...nothing,
    ...silent,
    item,
    outcome: 'refused',
    failure: { code: failureCodes.itemRefused, message: reason },
  });
  if (!chosen.ok) return refused(chosen.item, chosen.reason);
  const made = await makeTrialInputs({ ...request, inputs, folder: join(directory, 'inputs') }, chosen);
  const item = chosen.item ?? null;
  if (made.nothingToDo)
    return { ...nothing, ...silent, item, outcome: 'no_work', failure: null, refused: made.refused };
  const rendered = renderCommand(step, { item: chosen.item, inputs });
  if (!rendered.ok) return refused(item, rendered.reason);
  const message = {
    step: step.name,
    command: rendered.command,
    stdin: rendered.stdin,
    env: rendered.env,
    inputs: dispatchedInputs(step, definition.files),
    outputs: step.outputs.map(({ name, path, optional }) => ({ name, path, optional })),
    okExit: step.okExit,
    timeoutMs: step.timeoutMs,
  };
  const [tag = ''] = step.tags;
  const end = await runTrial({ message, inputs: made.paths, secrets, tag }, directory, log, signal);
  return {
    ...end,
    step: step.name,
    item,
    stdout: end.stdout.toString(),
    stderr: end.stderr.toString(),
    refused: made.refused,
    files: await readFiles(request, end),
  };
}

function inputValues({ definition, inputs, inputFiles }: TryRequest): Record<string, string | string[]> {
  const files = Object.fromEntries([...inputFiles.keys()].map((name) => [name, { sha256: '' }]));
  const resolved = resolveInputs(definition, { ...inputs, ...files });
  if (!resolved.ok) {
    const problems = resolved.problems.map(({ input, ...problem }) => ({
      ...problem,
      path: `inputs.${input}`,
    }));
    throw new SonarError('invalid', problems.map(({ message }) => message).join('; '), {
      details: { problems },
    });
  }
  return Object.fromEntries(
    Object.entries(resolved.inputs).flatMap(([name, value]) =>
      typeof value === 'string' || Array.isArray(value) ? [[name, value]] : [],
    ),
  );
}

/** No api is asked: they are taken from the caller's environment, under the names that the command sees. */
function secretsOf(step: Step, environment: TryRequest['environment']): Record<string, string> {
  const missing = Object.keys(step.secrets).filter((variable) => !environment[variable]);
  if (missing.length > 0)
    throw new SonarError(
      'usage',
      `the step takes secrets as ${missing.join(', ')}: set them in the environment for the trial`,
    );
  return Object.fromEntries(
    Object.keys(step.secrets).map((variable) => [variable, environment[variable] ?? '']),
  );
}

async function readFiles({ definition, step, limit }: TryRequest, end: TrialEnd): Promise<TriedFile[]> {
  const tried: TriedFile[] = [];
  for (const { entry, path } of end.files) {
    const { output, size } = entry;
    const read = step.outputs.find(({ name }) => name === output)?.read ?? null;
    const file = { output, path: entry.path, size, reader: read?.reader ?? null };
    if (read === null) {
      const counts = { rows: 0, records: 0, bad: 0, warnings: 0 };
      tried.push({ ...file, counts, records: [], rows: [], bad: [], warnings: [], poisoned: false });
      continue;
    }
    const types = knownTypes(definition.records);
    const { summary, good } = await summarizeReading(createReadStream(path), read, limit, types);
    tried.push({ ...file, ...summary, poisoned: good === 0 && summary.counts.bad > 0 });
  }
  return tried;
}
