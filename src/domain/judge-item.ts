// Which items a row comes to, and which of them may become a task: the same for an expansion, a plan and a trial.
import { createHash } from 'node:crypto';
import type { ForeachSpec, JsonValue, Row, Step } from '#sonar/contracts/definition.ts';
import { canonicalJson } from './inventory-fold.ts';
import { lineOf } from './list-line.ts';
import { fieldAt, pickItem } from './records-path.ts';
import { storableJson } from './records-storable.ts';
import { renderTarget } from './render.ts';
import type { RenderContext } from './render-values.ts';
import { checkTarget, type ParsedScope } from './scope.ts';
import { splitNetwork } from './split-network.ts';

/** UTF-8 bytes of one item: tasks carry theirs, and there may be a million of them. */
const maxItemBytes = 65_536;

export interface StreamFile {
  path: string;
  objectKey: string;
  size: number;
  sha256: string;
}

/** One place of the stream. What is passed over keeps its place, so that ordinals are the same in every pass. */
export type StreamElement =
  | { kind: 'item'; item: JsonValue; file: StreamFile | null; groupKey: string | null }
  | { kind: 'refused'; reason: string }
  | { kind: 'passed' };

export const passed: StreamElement = { kind: 'passed' };

/** What a row is judged by. */
export interface JudgeContext {
  step: Step;
  foreach: ForeachSpec;
  inputs: RenderContext['inputs'];
  scope: ParsedScope;
}

/** One for each element that a row comes to; what an element is costs something, and is only asked when needed. */
export function* judgesOf(context: JudgeContext, row: Row | string): Iterable<() => StreamElement> {
  const { group, pick, split } = context.foreach;
  if (group !== null) {
    yield () => groupElement(row, group);
    return;
  }
  const item = typeof row === 'string' ? row : pickItem(row, pick);
  if (item === undefined) yield () => passed;
  else if (split === null || typeof item !== 'string') yield () => elementOf(context, item);
  else {
    const network = splitNetwork(item, split);
    if (network.ok) for (const piece of network.pieces) yield () => elementOf(context, piece);
    else yield () => ({ kind: 'refused', reason: network.reason });
  }
}

/** A row of a group is checked with the whole group, when that is known. */
function groupElement(row: Row | string, field: string): StreamElement {
  const value = typeof row === 'string' ? undefined : fieldAt(row, field);
  if (typeof row === 'string' || value === undefined || value === null || value === '')
    return { kind: 'passed' };
  const item = storableJson(row);
  const fault = sizeFault(item);
  if (fault !== null) return { kind: 'refused', reason: fault };
  return { kind: 'item', item, file: null, groupKey: digestOf(storableJson(value)) };
}

function elementOf(context: JudgeContext, value: JsonValue): StreamElement {
  const item = storableJson(value);
  const reason = sizeFault(item) ?? formFault(context, item) ?? targetFault(context, item);
  return reason === null ? { kind: 'item', item, file: null, groupKey: null } : { kind: 'refused', reason };
}

const sizeFault = (item: JsonValue): string | null =>
  Buffer.byteLength(JSON.stringify(item)) > maxItemBytes
    ? `an item is larger than ${maxItemBytes} bytes`
    : null;

/** A batch is a file of lines, so each of its items must be one line. */
function formFault({ foreach }: Pick<JudgeContext, 'foreach'>, item: JsonValue): string | null {
  if (foreach.batch === null || foreach.batch.as === 'directory') return null;
  const line = lineOf(foreach.batch.as, item);
  return line.ok ? null : line.reason;
}

/** Why an item may not be touched, or null. */
export function targetFault(
  { step, inputs, scope }: Pick<JudgeContext, 'step' | 'inputs' | 'scope'>,
  item: JsonValue,
): string | null {
  if (step.target === null) return null;
  const rendered = renderTarget(step, { item, inputs });
  if (!rendered.ok) return rendered.reason;
  for (const target of rendered.targets) {
    const fault = scopeFault(scope, target);
    if (fault !== null) return fault;
  }
  return null;
}

/** Why one host, URL or network may not be touched, or null. */
export function scopeFault(scope: ParsedScope, target: string): string | null {
  const check = checkTarget(scope, target);
  return check.kind === 'refused'
    ? `${JSON.stringify(target).slice(0, 200)} is ${reasons[check.reason]}`
    : null;
}
const reasons = {
  denied: 'denied by the scope',
  not_allowed: 'outside the scope',
  unparseable: 'no host, URL or CIDR',
};

/** What `unique` and `group` compare: SHA-256 in hex. */
export const digestOf = (value: JsonValue): string =>
  createHash('sha256').update(canonicalJson(value)).digest('hex');
