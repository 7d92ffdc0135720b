// What a person sees of a scan under way: pure lines, drawn by whoever has the terminal.
import type { ScanDetail, StepView } from '#sonar/contracts/scan-api.ts';
import { counted, formatDuration, formatRate } from './figures.ts';
import { safeText, truncate } from './safe-text.ts';
import { type Column, renderTable, type TableSpace } from './table.ts';
import { paint, scanTones, stepTones, type Tone } from './tone.ts';

export interface ProgressSpace extends TableSpace {
  /** Rows of the terminal: lines beyond them cannot be redrawn. */
  rows: number;
  unicode: boolean;
}

/** What changes with time and is not in the scan itself. */
export interface ProgressFigures {
  elapsedMs: number;
  /** Tasks that ended, a second; null before there is a second sample. */
  tasksPerSecond: number | null;
  /** The api has not answered for so long; null while it does. */
  silentMs: number | null;
}

export interface StepSums {
  pending: number;
  running: number;
  done: number;
  failed: number;
  cancelled: number;
  total: number;
}

/** The counts of a step as people think of them: a published task waits for a worker like a pending one. */
export function sumsOf(counts: StepView['counts']): StepSums {
  const pending = counts.pending + counts.published;
  return {
    pending,
    running: counts.running,
    done: counts.completed,
    failed: counts.failed,
    cancelled: counts.cancelled,
    total: pending + counts.running + counts.completed + counts.failed + counts.cancelled,
  };
}

/** Tasks of all steps that will not change by themselves. */
export function endedTasks(detail: ScanDetail): number {
  return detail.steps.reduce(
    (sum, { counts }) => sum + counts.completed + counts.failed + counts.cancelled,
    0,
  );
}

/** What a step is doing, in one word. */
export function phaseOf(step: StepView): { word: string; tone: Tone } {
  if (step.state !== 'open') return { word: step.state, tone: stepTones[step.state] };
  if (step.starvedSince !== null) return { word: 'starved', tone: 'bad' };
  if (step.counts.running > 0) return { word: 'running', tone: 'busy' };
  const { total, pending } = sumsOf(step.counts);
  if (total === 0) return { word: 'waiting', tone: 'faint' };
  return pending > 0 ? { word: 'queued', tone: 'faint' } : { word: 'open', tone: 'busy' };
}

/** Notes that a reader of the table needs: why a step stands still, what was kept out. */
export function notesOf(detail: ScanDetail): { text: string; tone: Tone }[] {
  const notes: { text: string; tone: Tone }[] = [];
  for (const step of detail.steps) {
    if (step.starvedSince !== null)
      notes.push({
        text: `${step.step}: no live worker has ${step.tags.length > 1 ? 'any of the tags' : 'the tag'} ${step.tags.join(', ')}; start one: sonar worker start --tags ${step.tags[0] ?? 'TAG'}`,
        tone: 'bad',
      });
    if (step.note !== null) notes.push({ text: `${step.step}: ${step.note}`, tone: 'warning' });
    if (step.recovered > 0)
      notes.push({
        text: `${step.step}: taken back ${step.recovered === 1 ? 'once' : `${step.recovered} times`} from a lost attempt; see: sonar task list --scan ${detail.id} --step ${step.step}`,
        tone: 'warning',
      });
    if (step.refused > 0)
      notes.push({
        text: `${step.step}: ${step.refused} out of scope or not a host, kept out`,
        tone: 'warning',
      });
  }
  if (detail.unfinalized > 0)
    notes.push({ text: `${counted(detail.unfinalized, 'result')} not yet in the inventory`, tone: 'faint' });
  if (detail.poisoned > 0)
    notes.push({
      text: `${counted(detail.poisoned, 'result')} could not be read; see: sonar poison list --scan ${detail.id}`,
      tone: 'bad',
    });
  if (detail.reason !== null) notes.push({ text: detail.reason, tone: 'bad' });
  return notes;
}

/** The compact picture of a scan: a headline, a table of its steps, its notes. */
export function renderScanProgress(
  detail: ScanDetail,
  figures: ProgressFigures,
  space: ProgressSpace,
): string[] {
  const notes = notesOf(detail).map(({ text, tone }) => painted(text, tone, space));
  if (figures.silentMs !== null)
    notes.push(
      painted(
        `no answer from the api for ${formatDuration(figures.silentMs)}; trying again`,
        'warning',
        space,
      ),
    );
  const shownNotes = notes.slice(0, Math.max(1, Math.floor(space.rows / 3)));
  const room = Math.max(1, space.rows - shownNotes.length - 4);
  const steps = mostTelling(detail.steps, room);
  const lines = [headline(detail, figures, space), ...renderTable(stepColumns(detail, space), steps, space)];
  const left = detail.steps.length - steps.length;
  if (left > 0) lines.push(painted(`… and ${left} more steps`, 'faint', space));
  return [...lines, ...shownNotes];
}

function painted(text: string, tone: Tone, space: ProgressSpace): string {
  return paint(truncate(safeText(text), space.width), tone, space.colour);
}

function headline(detail: ScanDetail, figures: ProgressFigures, space: ProgressSpace): string {
  const rate = figures.tasksPerSecond === null ? '' : `  ${formatRate(figures.tasksPerSecond)} tasks/s`;
  const rest = `  ${formatDuration(figures.elapsedMs)}${rate}  ${detail.id}`;
  const status = safeText(detail.status);
  const name = truncate(safeText(detail.name), Math.max(8, space.width - status.length - rest.length - 2));
  const plain = truncate(`${name}  ${status}${rest}`, space.width);
  return space.colour ? plain.replace(status, () => paint(status, scanTones[detail.status], true)) : plain;
}

/** When not all steps fit: those that move or hold, before those that are over or have not begun. */
function mostTelling(steps: readonly StepView[], room: number): StepView[] {
  if (steps.length <= room) return [...steps];
  const rank = (step: StepView): number =>
    step.state === 'settled' ? 1 : sumsOf(step.counts).total === 0 ? 2 : 0;
  const kept = new Set(steps.toSorted((left, right) => rank(left) - rank(right)).slice(0, room));
  return steps.filter((step) => kept.has(step));
}

const barMin = 8;
const barMax = 30;
/** Columns that the figures take beside name and bar. */
const figuresWidth = 48;
/** Below these the titles are shortened, and then the states go: the figures say most. */
const shortTitlesBelow = 62;
const noStatesBelow = 46;

function stepColumns(detail: ScanDetail, space: ProgressSpace): Column<StepView>[] {
  const short = space.width < shortTitlesBelow;
  const columns: Column<StepView>[] = [{ title: 'STEP', cell: (step) => step.step, shrinkTo: 8 }];
  if (space.width >= noStatesBelow)
    columns.push({
      title: 'STATE',
      cell: (step) => ({ text: phaseOf(step).word, tone: phaseOf(step).tone }),
    });
  columns.push(
    figure(short ? 'PEND' : 'PENDING', (sums) => sums.pending),
    figure(short ? 'RUN' : 'RUNNING', (sums) => sums.running, 'busy'),
    figure('DONE', (sums) => sums.done, 'good'),
    figure(short ? 'FAIL' : 'FAILED', (sums) => sums.failed, 'bad'),
  );
  if (detail.steps.some((step) => step.counts.cancelled > 0))
    columns.push(figure(short ? 'CANC' : 'CANCELLED', (sums) => sums.cancelled, 'warning'));
  const longestName = detail.steps.reduce((longest, step) => Math.max(longest, step.step.length), 4);
  const spare = Math.min(space.width, 120) - figuresWidth - Math.min(longestName, 24);
  if (spare >= barMin)
    columns.push({
      title: '',
      cell: (step) => ({ text: barOf(step, Math.min(barMax, spare), space.unicode), tone: 'plain' }),
    });
  return columns;
}

function figure(title: string, pick: (sums: StepSums) => number, tone: Tone = 'plain'): Column<StepView> {
  return {
    title,
    align: 'right',
    cell: (step) => {
      const value = pick(sumsOf(step.counts));
      return { text: String(value), tone: value === 0 ? 'faint' : tone };
    },
  };
}

/** Done and failed tasks of those that are known so far; an unfinished step is never shown as full. */
export function barOf(step: StepView, width: number, unicode: boolean): string {
  const { total, pending, running } = sumsOf(step.counts);
  const over = step.state === 'settled';
  const share = total === 0 ? (over ? 1 : 0) : (total - pending - running) / total;
  const percent = over ? 100 : Math.min(99, Math.floor(share * 100));
  const cells = width - 5;
  const full = over ? cells : Math.min(cells - 1, Math.floor(share * cells));
  const [done, open] = unicode ? ['█', '░'] : ['#', '.'];
  return `${done.repeat(full)}${open.repeat(cells - full)} ${String(percent).padStart(3)}%`;
}
