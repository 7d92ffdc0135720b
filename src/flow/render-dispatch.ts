// A pending task becomes the dispatch of a fresh attempt, or the reason why it cannot.
import type { Definition, Step } from '#sonar/contracts/definition.ts';
import type { Dispatch } from '#sonar/contracts/dispatch-message.ts';
import type { AttemptId } from '#sonar/contracts/ids.ts';
import { dispatchKey } from '#sonar/contracts/names.ts';
import { renderCommand, renderTarget } from '#sonar/domain/render.ts';
import type { RenderContext } from '#sonar/domain/render-values.ts';
import { checkTarget, type ParsedScope } from '#sonar/domain/scope.ts';
import { dispatchedInputs } from '#sonar/domain/step-inputs.ts';
import { messageOf } from '#sonar/platform/errors.ts';
import { newId } from '#sonar/platform/ids.ts';
import type { NewDispatch, PendingStepRow, PendingTaskRow } from '#sonar/stores/placement.ts';

export interface DispatchSource extends PendingStepRow {
  files: Definition['files'];
  inputs: RenderContext['inputs'];
  /** Null where the step touches no host. */
  scope: ParsedScope | null;
}

// Well below what a broker's message and a statement may hold; long lists belong into files.
const maxDispatchBytes = 2 * 1024 * 1024;

type Rendered = { ok: true; dispatch: NewDispatch } | { ok: false; reason: string };

/** The scope is checked again here: the last gate before a command touches a host. Never throws: the item is refused. */
export function renderDispatch(
  source: DispatchSource,
  step: Step,
  task: PendingTaskRow,
  tag: string,
): Rendered {
  try {
    return render(source, step, task, tag);
  } catch (error) {
    return { ok: false, reason: `its command cannot be rendered: ${messageOf(error).slice(0, 200)}` };
  }
}

function render(source: DispatchSource, step: Step, task: PendingTaskRow, tag: string): Rendered {
  const context: RenderContext = { item: task.item ?? undefined, inputs: source.inputs };
  const outOfScope = targetFault(source.scope, step, context);
  if (outOfScope !== undefined) return { ok: false, reason: outOfScope };
  const rendered = renderCommand(step, context);
  if (!rendered.ok) return { ok: false, reason: rendered.reason };
  const attemptId = newId<AttemptId>();
  const payload: Dispatch = {
    v: 1,
    attemptId,
    taskId: task.task_id,
    scanId: source.scan_id,
    step: step.name,
    tag,
    dispatchKey: dispatchKey(source.scan_id, task.task_id, step.name),
    command: rendered.command,
    stdin: rendered.stdin,
    env: rendered.env,
    inputs: dispatchedInputs(step, source.files),
    outputs: step.outputs.map((output) => ({
      name: output.name,
      path: output.path,
      optional: output.optional,
    })),
    okExit: step.okExit,
    timeoutMs: step.timeoutMs,
  };
  const bytes = Buffer.byteLength(JSON.stringify(payload));
  if (bytes > maxDispatchBytes)
    return {
      ok: false,
      reason: `the command is ${bytes} bytes long, more than ${maxDispatchBytes}; give long lists as files`,
    };
  return {
    ok: true,
    dispatch: {
      taskId: task.task_id,
      attemptId,
      eventId: newId(),
      tag,
      number: task.attempts + 1,
      bytes,
      payload,
    },
  };
}

function targetFault(scope: ParsedScope | null, step: Step, context: RenderContext): string | undefined {
  // The items of a batch were checked one by one before it was made.
  if (scope === null || step.foreach?.batch != null) return undefined;
  const rendered = renderTarget(step, context);
  if (!rendered.ok) return rendered.reason;
  const refused = rendered.targets.find((target) => checkTarget(scope, target).kind === 'refused');
  return refused === undefined
    ? undefined
    : `target ${JSON.stringify(refused).slice(0, 200)} is not within the scope`;
}
