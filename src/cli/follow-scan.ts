// Shows a watched scan: a picture that is drawn over on a terminal, one line a change everywhere else.
import type { ScanDetail, StepView } from '#sonar/contracts/scan-api.ts';
import { formatDuration, RateMeter } from './figures.ts';
import { safeText } from './safe-text.ts';
import { endedTasks, notesOf, phaseOf, renderScanProgress, sumsOf } from './scan-progress.ts';
import { LiveLines, type Sink, wantsColour, wantsUnicode } from './terminal.ts';
import type { WatchEvent } from './watch-scan.ts';

export interface FollowOptions {
  environment: Readonly<Record<string, string | undefined>>;
  /** Wall clock, for the time since the scan was created. */
  now?: () => number;
}

/** Shows the events as they come; the scan as it was seen last, or null when it was never seen. */
export async function followScan(
  events: AsyncIterable<WatchEvent>,
  sink: Sink,
  options: FollowOptions,
): Promise<ScanDetail | null> {
  const view = sink.isTerminal ? terminalView(sink, options) : lineView(sink);
  let last: ScanDetail | null = null;
  for await (const event of events) {
    if (event.kind === 'seen') last = event.detail;
    view(event);
  }
  return last;
}

/** Follows without showing: for `--json`, whose one value comes at the end. */
export async function lastSeen(events: AsyncIterable<WatchEvent>): Promise<ScanDetail | null> {
  let last: ScanDetail | null = null;
  for await (const event of events) if (event.kind === 'seen') last = event.detail;
  return last;
}

function terminalView(sink: Sink, options: FollowOptions): (event: WatchEvent) => void {
  const lines = new LiveLines(sink);
  const meter = new RateMeter();
  const now = options.now ?? Date.now;
  const look = { colour: wantsColour(sink, options.environment), unicode: wantsUnicode(options.environment) };
  let last: ScanDetail | null = null;
  return (event) => {
    if (event.kind === 'seen') {
      last = event.detail;
      meter.add(endedTasks(last), now());
    }
    if (last === null) return;
    const { columns, rows } = sink.size();
    // One column and one row less: a full line would wrap, a full screen would scroll.
    const space = { ...look, width: columns - 1, rows: rows - 1 };
    const silentMs = event.kind === 'silent' ? event.silentMs : null;
    const figures = { elapsedMs: elapsedMs(last, now()), tasksPerSecond: meter.perSecond(), silentMs };
    lines.draw(renderScanProgress(last, figures, space));
  };
}

/** How long the scan has been going, or went. */
export function elapsedMs(detail: Pick<ScanDetail, 'createdAt' | 'finishedAt'>, nowMs: number): number {
  const end = detail.finishedAt === null ? nowMs : Date.parse(detail.finishedAt);
  return Math.max(0, end - Date.parse(detail.createdAt));
}

function lineView(sink: Sink): (event: WatchEvent) => void {
  let before: ReadonlyMap<string, Told> = new Map();
  let silent = false;
  return (event) => {
    if (event.kind === 'silent') {
      if (!silent) sink.write(`${safeText(event.fault.message)} (trying again)\n`);
      silent = true;
      return;
    }
    if (silent) sink.write('the api answers again\n');
    silent = false;
    const told = toldOf(event.detail);
    for (const [about, { state, line }] of told)
      if (before.get(about)?.state !== state) sink.write(`${safeText(line)}\n`);
    before = told;
  };
}

interface Told {
  /** A line is written when this differs from what was told last. */
  state: string;
  line: string;
}

/** What there is to tell, by whom it is about. */
function toldOf(detail: ScanDetail): Map<string, Told> {
  const told = new Map<string, Told>();
  told.set('scan', { state: detail.status, line: `scan ${detail.id} ${detail.status}` });
  for (const step of detail.steps) {
    const word = lastingPhase(step);
    const sums = sumsOf(step.counts);
    const counts = `${sums.pending} pending, ${sums.running} running, ${sums.done} done, ${sums.failed} failed`;
    told.set(`step ${step.step}`, { state: word, line: `step ${step.step} ${word}: ${counts}` });
  }
  for (const { text, tone } of notesOf(detail)) {
    if (tone === 'faint') continue;
    // A note whose count grows is told once.
    const state = text.replace(/\d+/g, 'N');
    told.set(`note ${state}`, { state, line: text });
  }
  return told;
}

/** A step that has begun counts as running between two of its tasks too: a line a task would flood a log. */
function lastingPhase(step: StepView): string {
  const { word } = phaseOf(step);
  if (word !== 'queued' && word !== 'open') return word;
  const { total, pending } = sumsOf(step.counts);
  return total > pending ? 'running' : word;
}

/** One line for the end of a scan. */
export function summaryOf(detail: ScanDetail, nowMs: number): string {
  const total = { done: 0, failed: 0, cancelled: 0 };
  for (const step of detail.steps) {
    total.done += step.counts.completed;
    total.failed += step.counts.failed;
    total.cancelled += step.counts.cancelled;
  }
  const records = Object.entries(detail.records).map(([type, count]) => `${count} ${type}`);
  const parts = [
    `${total.done} tasks done`,
    `${total.failed} failed`,
    ...(total.cancelled > 0 ? [`${total.cancelled} cancelled`] : []),
    records.length === 0 ? 'no records' : `records: ${records.join(', ')}`,
  ];
  return safeText(`${detail.status} after ${formatDuration(elapsedMs(detail, nowMs))}: ${parts.join('; ')}`);
}
