// `sonar scan logs`: what happened in a scan, a line an event.
import type { ScanEvent } from '#sonar/contracts/task-api.ts';
import { pause } from '#sonar/platform/wait.ts';
import type { ApiClient } from './api-client.ts';
import { type ExitCode, exitCodes, scanExitCode } from './exit-codes.ts';
import { formatTime } from './figures.ts';
import { safeJson, safeText } from './safe-text.ts';
import type { Session } from './session.ts';
import { wantsColour } from './terminal.ts';
import { paint, type Tone } from './tone.ts';
import type { PageOptions } from './word-parsers.ts';

const pageSize = 1_000;
const pollMs = 2_000;

export async function showScanLogs(
  session: Session,
  id: string,
  { limit, after, follow }: PageOptions & { follow?: boolean },
): Promise<ExitCode> {
  if (follow) return followScanLogs(session, id, after ?? null);
  const client = await session.api();
  const items: ScanEvent[] = [];
  let next = after ?? null;
  let more = true;
  while (more && items.length < limit) {
    const asked = Math.min(pageSize, limit - items.length);
    const page = await client.scanEvents(id, next, asked);
    items.push(...page.items);
    next = page.next;
    more = page.items.length === asked;
  }
  session.answer({ items, next }, () => items.map((event) => eventLine(session, event)));
  if (more) session.hint(`there is more: --after ${next}, or a higher --limit`);
  return exitCodes.ok;
}

/** Until the scan has ended and all of it is told; with `--json` a value a line. */
async function followScanLogs(session: Session, id: string, after: string | null): Promise<ExitCode> {
  const interruption = new AbortController();
  const { signal } = interruption;
  const settled = session.surroundings.onInterrupt(() => interruption.abort());
  try {
    const client = await session.api(signal);
    const scan = await client.scan(id);
    return await tell(session, client, { id: scan.id, after, signal });
  } catch (error) {
    if (signal.aborted) return exitCodes.interrupted;
    throw error;
  } finally {
    settled();
  }
}

async function tell(
  session: Session,
  client: ApiClient,
  { id, after, signal }: { id: string; after: string | null; signal: AbortSignal },
): Promise<ExitCode> {
  for (let place = after; ; ) {
    // Asked before the events: when it had ended by then and its end is told, nothing comes after it.
    const { status } = await client.scan(id);
    let ended = false;
    for (let full = true; full; ) {
      const page = await client.scanEvents(id, place, pageSize);
      for (const event of page.items)
        session.say(session.json ? safeJson(event, 0) : eventLine(session, event));
      place = page.next;
      full = page.items.length === pageSize;
      if (page.items.length > 0) ended = page.items.at(-1)?.kind === 'scan_ended';
    }
    if (ended && scanExitCode(status) !== null) return exitCodes.ok;
    await pause(pollMs, signal);
    if (signal.aborted) return exitCodes.interrupted;
  }
}

const reasonTones: Record<string, Tone> = {
  completed: 'good',
  Completed: 'good',
  failed: 'bad',
  timed_out: 'bad',
  not_started: 'bad',
  Failed: 'bad',
  released: 'warning',
  recovered: 'warning',
  cancelled: 'warning',
  Cancelled: 'warning',
  CompletedWithErrors: 'warning',
};

function eventLine(session: Session, event: ScanEvent): string {
  const { stdout, environment } = session.surroundings;
  const colour = wantsColour(stdout, environment);
  const tone =
    event.kind === 'failed' || event.kind === 'poisoned'
      ? 'bad'
      : (reasonTones[event.reason ?? ''] ?? 'plain');
  const task = event.taskId === null ? '' : `  ${paint(event.taskId, 'faint', colour)}`;
  return `${formatTime(event.at)}  ${paint(safeText(whatHappened(event)), tone, colour)}${task}`;
}

function whatHappened(event: ScanEvent): string {
  const message = event.message ? `: ${event.message}` : '';
  const worker = event.worker === null ? '' : ` on ${event.worker}`;
  switch (event.kind) {
    case 'scan_started':
      return `scan started${message}`;
    case 'step_began':
      return `${event.step}: its first task was planned`;
    case 'placed':
      return `${event.step}: placed on ${event.tag}`;
    case 'ended':
      return `${event.step}: ${event.reason}${worker}${message}`;
    case 'failed':
      return `${event.step}: failed, ${event.reason}${message}`;
    case 'poisoned':
      return `${event.step}: its result could not be read${message}`;
    case 'scan_ended':
      return `scan ended ${event.reason}${message}`;
    default:
      return event.kind satisfies never;
  }
}
