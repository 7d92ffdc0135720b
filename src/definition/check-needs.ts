// The graph of steps: who needs whom, in which order.
import type { FieldReading } from './field-reading.ts';
import { meantHint } from './nearest-name.ts';
import type { StepDraft } from './step-draft.ts';

/** Reports unknown steps, a second single need and cycles; gives the steps in an order that `needs` allow. */
export function orderSteps(reading: FieldReading, drafts: readonly StepDraft[]): StepDraft[] {
  const names = new Set(drafts.map(({ step }) => step.name));
  for (const draft of drafts) checkNeeds(reading, draft, names);
  const ordered: StepDraft[] = [];
  const placed = new Set<string>();
  let rest = [...drafts];
  while (rest.length > 0) {
    const ready = rest.find(({ step }) =>
      step.needs.every((need) => placed.has(need.step) || need.step === step.name || !names.has(need.step)),
    );
    if (ready === undefined) {
      reportCycle(reading, rest);
      return [...ordered, ...rest];
    }
    ordered.push(ready);
    placed.add(ready.step.name);
    rest = rest.filter((draft) => draft !== ready);
  }
  return ordered;
}

function checkNeeds(reading: FieldReading, { step, needs }: StepDraft, names: ReadonlySet<string>): void {
  for (const need of needs) {
    if (need.key === step.name) {
      reading.problems.add(need.path, need.keyAt, `\`${step.name}\` needs itself`);
    } else if (!names.has(need.key)) {
      const hint = meantHint(
        need.key,
        [...names].filter((name) => name !== step.name),
      );
      reading.problems.add(need.path, need.keyAt, `there is no step \`${need.key}\``, hint);
    }
  }
  const [, second] = step.needs.filter(({ mode }) => mode === 'single');
  const entry = needs.find(({ key }) => key === second?.step);
  if (entry !== undefined) {
    const hint = 'a task comes from one task of one step; make the other need `all`';
    reading.problems.add(entry.path, entry.keyAt, 'at most one need may be `single`', hint);
  }
}

/** Names one cycle whole: every step that is left needs another that is left, so following needs closes one. */
function reportCycle(reading: FieldReading, rest: readonly StepDraft[]): void {
  const byName = new Map(rest.map((draft) => [draft.step.name, draft]));
  const walk: string[] = [];
  let current = rest[0];
  while (current !== undefined && !walk.includes(current.step.name)) {
    const { name, needs } = current.step;
    walk.push(name);
    current = byName.get(needs.find(({ step }) => step !== name && byName.has(step))?.step ?? '');
  }
  if (current === undefined) return;
  const cycle = walk.slice(walk.indexOf(current.step.name));
  const next = cycle[1] ?? current.step.name;
  const need = current.needs.find(({ key }) => key === next);
  const at = need ?? current.entry;
  reading.problems.add(
    at.path,
    at.keyAt,
    `the steps need each other in a circle: ${[...cycle, cycle[0]].join(' → ')}`,
  );
}
