// The tasks that a scan would make, as far as they can be known before a command has run. By the same judgement as
// the real thing: inputs and scope like a start, items like an expansion, commands like a placement. Writes nothing.
import { setImmediate } from 'node:timers/promises';
import { type Definition, type JsonValue, listInputTypes, type Step } from '#sonar/contracts/definition.ts';
import type { PlannedStep, PlanPreview, PlanRequest } from '#sonar/contracts/scan-api.ts';
import type { Database } from '#sonar/db/pool.ts';
import { compileDefinition } from '#sonar/definition/compile.ts';
import { DigestSet } from '#sonar/domain/digest-set.ts';
import { digestOf, judgesOf } from '#sonar/domain/judge-item.ts';
import { LineFilter } from '#sonar/domain/line-filter.ts';
import { renderCommand } from '#sonar/domain/render.ts';
import type { RenderContext } from '#sonar/domain/render-values.ts';
import { type ParsedScope, parseScope } from '#sonar/domain/scope.ts';
import { showCommand } from '#sonar/domain/shown-command.ts';
import { madeInputs, targetInput } from '#sonar/domain/step-inputs.ts';
import type { Settings } from '#sonar/platform/config.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { latestRevision } from '#sonar/stores/definitions.ts';
import { eligibleWorkers } from '#sonar/stores/placement.ts';
import { missingSecrets } from '#sonar/stores/secrets.ts';
import { storedFile } from '#sonar/stores/stored-files.ts';
import type { ObjectStore } from '#sonar/transport/object-store.ts';
import { linesOfRow, linesOfStored } from './read-list.ts';
import { missingSecretsNote } from './report-scan.ts';
import { judgeRequest, type NewInput } from './start-scan.ts';

interface PreviewParts {
  database: Database;
  objects: ObjectStore;
  settings: Pick<Settings, 'SONAR_ALIVE_WITHIN_MS'>;
}

// A caller waits half a minute for an answer; what could not be counted by then is said.
const budgetMs = 20_000;
// The loop is everybody's: so many items, and then the others.
const itemsATurn = 1_000;

/** @throws SonarError `not_found`, or `invalid` with all faults of text, inputs and scope. */
export async function previewPlan(
  parts: PreviewParts,
  workspaceId: string,
  request: PlanRequest,
): Promise<PlanPreview> {
  const { definition, revision } = await definitionOf(parts.database, workspaceId, request);
  const judged = await judgeRequest(parts.database, workspaceId, definition, request);
  const parsed = parseScope(judged.scope);
  if (!parsed.ok) throw new SonarError('invalid', 'the scope does not parse');
  const preview = new Preview(parts, workspaceId, judged.inputs, parsed.scope, request.limit ?? 5);
  const steps: PlannedStep[] = [];
  for (const step of definition.steps) steps.push(await preview.stepOf(step));
  const tasks = steps.reduce((sum, step) => sum + step.tasks, 0);
  return { definition: definition.name, revision, scope: judged.scope, tasks, steps };
}

async function definitionOf(
  database: Database,
  workspaceId: string,
  request: PlanRequest,
): Promise<{ definition: Definition; revision: number | null }> {
  const { definition: name, source } = request;
  if ((name === undefined) === (source === undefined))
    throw new SonarError('invalid', 'give the name of a definition or the text of one, and not both');
  if (source !== undefined) {
    const compiled = compileDefinition(source);
    if (compiled.ok) return { definition: compiled.definition, revision: null };
    const { problems } = compiled;
    throw new SonarError('invalid', `the definition has ${problems.length} problem(s)`, {
      details: { problems },
    });
  }
  const row = await latestRevision(database, workspaceId, name ?? '');
  if (row) return { definition: row.compiled, revision: row.revision };
  throw new SonarError(
    'not_found',
    `there is no definition "${name}"; list them with: sonar definition list`,
  );
}

class Preview {
  readonly #parts: PreviewParts;
  readonly #workspaceId: string;
  readonly #inputs: readonly NewInput[];
  readonly #values: RenderContext['inputs'];
  readonly #scope: ParsedScope;
  readonly #limit: number;
  readonly #until = performance.now() + budgetMs;
  #turn = 0;

  constructor(
    parts: PreviewParts,
    workspaceId: string,
    inputs: readonly NewInput[],
    scope: ParsedScope,
    limit: number,
  ) {
    this.#parts = parts;
    this.#workspaceId = workspaceId;
    this.#inputs = inputs;
    this.#scope = scope;
    this.#limit = limit;
    this.#values = Object.fromEntries(
      inputs
        .filter(({ fileSha256 }) => fileSha256 === null)
        .map(({ name, type, content }) => [name, isList(type) ? linesOfRow(content) : content]),
    );
  }

  async stepOf(step: Step): Promise<PlannedStep> {
    const planned: PlannedStep = {
      step: step.name,
      tags: step.tags,
      dependsOn: dependenciesOf(step),
      tasks: 0,
      noWork: false,
      refused: 0,
      refusals: [],
      failing: 0,
      failures: [],
      samples: [],
      notes: await this.#notesOf(step),
      counted: true,
    };
    if (planned.dependsOn.length > 0) return planned;
    const empty = await this.#fileTargetIsEmpty(step, planned);
    if (!empty && step.foreach === null) this.#task(step, undefined, planned);
    else if (!empty) await this.#items(step, planned);
    if (planned.tasks === 0 && planned.counted) Object.assign(planned, { tasks: 1, noWork: true });
    return planned;
  }

  async #notesOf(step: Step): Promise<string[]> {
    const { database, settings } = this.#parts;
    const names = [...new Set(Object.values(step.secrets))];
    const missing = names.length === 0 ? [] : await missingSecrets(database, this.#workspaceId, names);
    const workers = await eligibleWorkers(database, settings.SONAR_ALIVE_WITHIN_MS);
    const served = workers.some(({ tags }) => step.tags.some((tag) => tags.includes(tag)));
    const notes = [
      missingSecretsNote(missing),
      served ? '' : `no live worker has the tag ${step.tags.join(' or ')}`,
    ];
    return notes.filter((note) => note !== '');
  }

  /** Lines of a target file that the scope keeps out are counted; without any left there is nothing to do. */
  async #fileTargetIsEmpty(step: Step, planned: PlannedStep): Promise<boolean> {
    const target = targetInput(step);
    const spec = madeInputs(step).find(({ name }) => name === target);
    if (spec?.from.kind !== 'input') return false;
    const filter = new LineFilter(spec, this.#scope);
    let lines = 0;
    for await (const line of this.#lines(spec.from.input, planned)) {
      if (line.text === null) this.#refuse(planned, line.fault);
      else
        for (const judged of filter.linesOf(line.text))
          if (judged.line === null) this.#refuse(planned, judged.reason);
          else lines += 1;
    }
    return lines === 0;
  }

  async #items(step: Step, planned: PlannedStep): Promise<void> {
    const { foreach } = step;
    if (foreach?.in.kind !== 'input') return;
    const context = { step, foreach, inputs: this.#values, scope: this.#scope };
    const seen = foreach.unique ? new DigestSet() : null;
    const batch = new BatchCount(foreach.batch?.size ?? null, (item) => this.#task(step, item, planned));
    for await (const line of this.#lines(foreach.in.input, planned)) {
      if (line.text === null) this.#refuse(planned, line.fault);
      else
        for (const judge of judgesOf(context, line.text)) {
          const element = judge();
          if (element.kind === 'refused') this.#refuse(planned, element.reason);
          else if (element.kind === 'item' && isFresh(seen, element.item)) batch.add(element.item);
          if (await this.#isLate(planned)) return;
        }
    }
    batch.end();
  }

  async *#lines(
    input: string,
    planned: PlannedStep,
  ): AsyncGenerator<{ text: string; fault: null } | { text: null; fault: string }> {
    const given = this.#inputs.find(({ name }) => name === input);
    const file =
      given?.fileSha256 == null
        ? undefined
        : await storedFile(this.#parts.database, this.#workspaceId, given.fileSha256);
    const lines =
      file === undefined
        ? linesOfRow(given?.content ?? '').map((text) => ({ text, fault: null }))
        : linesOfStored(this.#parts.objects, file);
    for await (const line of lines) {
      yield line;
      if (await this.#isLate(planned)) return;
    }
  }

  async #isLate(planned: PlannedStep): Promise<boolean> {
    this.#turn += 1;
    if (this.#turn % itemsATurn === 0) await setImmediate();
    if (performance.now() > this.#until) planned.counted = false;
    return !planned.counted;
  }

  #refuse(planned: PlannedStep, reason: string): void {
    planned.refused += 1;
    if (planned.refusals.length < this.#limit) planned.refusals.push(reason);
  }

  #task(step: Step, item: JsonValue | undefined, planned: PlannedStep): void {
    planned.tasks += 1;
    const rendered = renderCommand(step, { item, inputs: this.#values });
    if (!rendered.ok) {
      planned.failing += 1;
      if (planned.failures.length < this.#limit)
        planned.failures.push({ item: item ?? null, reason: rendered.reason });
    } else if (planned.samples.length < this.#limit)
      planned.samples.push({ item: item ?? null, ...showCommand(rendered) });
  }
}

const isList = (type: string): boolean => (listInputTypes as readonly string[]).includes(type);

const isFresh = (seen: DigestSet | null, item: JsonValue): boolean =>
  seen === null || seen.add(Buffer.from(digestOf(item), 'hex'));

/** Outputs that a step reads, and steps that it only comes after. */
function dependenciesOf(step: Step): string[] {
  const sources = [...(step.foreach ? [step.foreach.in] : []), ...step.inputs.map(({ from }) => from)];
  const read = sources.flatMap((source) =>
    source.kind === 'output' ? [{ step: source.step, name: `${source.step}.${source.output}` }] : [],
  );
  const after = step.needs.filter((need) => !read.some((source) => source.step === need.step));
  return [...new Set([...read.map(({ name }) => name), ...after.map((need) => need.step)])];
}

/** Items as they are, or so many of them together with the first and the last. */
class BatchCount {
  readonly #size: number | null;
  readonly #emit: (item: JsonValue) => void;
  #items = 0;
  #first: JsonValue = null;
  #last: JsonValue = null;

  constructor(size: number | null, emit: (item: JsonValue) => void) {
    this.#size = size;
    this.#emit = emit;
  }

  add(item: JsonValue): void {
    if (this.#size === null) {
      this.#emit(item);
      return;
    }
    if (this.#items === 0) this.#first = item;
    this.#last = item;
    this.#items += 1;
    if (this.#items === this.#size) this.end();
  }

  end(): void {
    if (this.#items > 0) this.#emit({ items: this.#items, first: this.#first, last: this.#last });
    this.#items = 0;
  }
}
