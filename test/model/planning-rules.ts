// What planning, retry and the end of the scan come to, in the model.
import { isOver, liveTasks, type Model, type ModelTask, type StepName, stepNames } from './model.ts';

export interface Wanted {
  step: StepName;
  parent: string | null;
  ordinal: number | null;
}

/** A whole tick's planning, pass by pass until nothing changes. @returns the tasks that it must make. */
export function planned(model: Model): Wanted[] {
  const wanted: Wanted[] = [];
  for (let before = ''; before !== stateOf(model, wanted); ) {
    before = stateOf(model, wanted);
    pass(model, wanted);
  }
  return wanted;
}

const stateOf = (model: Model, wanted: readonly Wanted[]): string =>
  JSON.stringify([model.steps, wanted.length]);

function pass(model: Model, wanted: Wanted[]): void {
  if (model.scan.status === 'Cancelling') {
    cancelOpen(model, stepNames, 'scan_cancelled');
    return;
  }
  if (model.scan.status !== 'Running') return;
  model.scan.revision = model.newest;
  const { each, child, total, report } = model.steps;
  if (!each.activated)
    for (let ordinal = 0; ordinal < model.lines; ordinal += 1)
      wanted.push({ step: 'each', parent: null, ordinal });
  each.activated = true;
  child.activated = true;
  for (const task of liveTasks(model).filter(({ planDue }) => planDue)) {
    task.planDue = false;
    if (task.step === 'each' && child.state === 'open')
      wanted.push({ step: 'child', parent: task.id, ordinal: null });
  }
  const open = (step: StepName): boolean =>
    wanted.some((task) => task.step === step) ||
    liveTasks(model, step).some((task) => !isOver(task) || !task.finalized);
  const begin = (step: 'total' | 'report', needed: StepName): void => {
    const own = model.steps[step];
    if (own.state !== 'open' || own.activated || model.steps[needed].state === 'open') return;
    if (liveTasks(model, needed).some((task) => task.status === 'Completed')) {
      own.activated = true;
      wanted.push({ step, parent: null, ordinal: null });
    } else own.state = 'blocked';
  };
  if (each.state === 'open' && !open('each')) each.state = 'settled';
  if (child.state === 'open' && each.state !== 'open' && !open('child')) child.state = 'settled';
  begin('total', 'each');
  begin('report', 'child');
  if (total.state === 'open' && total.activated && !open('total')) total.state = 'settled';
  if (report.state === 'open' && report.activated && !open('report')) report.state = 'settled';
}

function cancelOpen(model: Model, steps: readonly StepName[], failure: string): void {
  for (const task of liveTasks(model)) {
    if (isOver(task) || !steps.includes(task.step)) continue;
    const attempt = task.attempt === null ? undefined : model.attempts.get(task.attempt);
    if (attempt && !attempt.ended) {
      attempt.cancelAskedAt = model.now;
      if (task.status === 'Published') attempt.ended = true;
    }
    Object.assign(task, { status: 'Cancelled', attempt: null, failure });
  }
}

const retryable = (task: ModelTask): boolean => task.status === 'Failed' || task.status === 'Cancelled';

/** A retry of all, or of one task; false: refused. */
export function retried(model: Model, only: string | null): boolean {
  const chosen = liveTasks(model).filter((task) => retryable(task) && (only === null || task.id === only));
  if (model.scan.status === 'Cancelling' || chosen.length === 0) return false;
  const steps = new Set(chosen.map(({ step }) => step));
  const again = (step: StepName): boolean => steps.has(step);
  const anew: StepName[] = [
    ...(again('each') ? (['total', 'report'] as const) : []),
    ...(again('child') && !again('each') ? (['report'] as const) : []),
  ];
  const reopened = stepNames.filter(
    (step) => !anew.includes(step) && (again(step) || (step === 'child' && again('each'))),
  );
  for (const task of chosen.filter(({ step }) => reopened.includes(step))) {
    model.poisoned.delete(task.id);
    Object.assign(task, {
      status: 'Pending',
      attempt: null,
      retries: 0,
      releases: 0,
      recoveries: 0,
      dueAt: 0,
      finalized: true,
      planDue: false,
      failure: null,
      rows: 'none',
      accepted: null,
    } satisfies Partial<ModelTask>);
  }
  cancelOpen(model, anew, 'superseded');
  for (const task of liveTasks(model).filter(({ step }) => anew.includes(step)))
    Object.assign(task, { superseded: true, planDue: false });
  for (const step of reopened) model.steps[step].state = 'open';
  for (const step of anew) model.steps[step] = { activated: false, state: 'open' };
  if (!['Running', 'Paused'].includes(model.scan.status)) {
    model.scan.status = 'Running';
    model.scan.generation += 1;
  }
  return true;
}

/** The state that a settling must find. */
export function settled(model: Model): string {
  const { status } = model.scan;
  if (status !== 'Running' && status !== 'Cancelling') return status;
  const unread = [...model.tasks.values()].some(({ finalized }) => !finalized);
  if (unread || liveTasks(model).some((task) => !isOver(task))) return status;
  if (status === 'Cancelling') {
    const running = [...model.attempts.values()].some(({ ended }) => !ended);
    return running ? status : 'Cancelled';
  }
  const owed = liveTasks(model).some(({ planDue }) => planDue);
  if (owed || stepNames.some((step) => model.steps[step].state === 'open')) return status;
  const barren = stepNames.some((step) => {
    const tasks = liveTasks(model, step);
    return tasks.length > 0 && !tasks.some((task) => task.status === 'Completed');
  });
  const blocked = stepNames.some((step) => model.steps[step].state === 'blocked');
  return barren || blocked || model.poisoned.size > 0 ? 'CompletedWithErrors' : 'Completed';
}
