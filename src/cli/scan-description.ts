import type { ScanDetail } from '#sonar/contracts/scan-api.ts';
import { facts } from './facts.ts';
import { formatDuration, formatTime } from './figures.ts';
import { elapsedMs } from './follow-scan.ts';
import { renderScanProgress } from './scan-progress.ts';
import type { Session } from './session.ts';
import { wantsColour, wantsUnicode, widthOf } from './terminal.ts';

/** Everything about one scan that fits a screen. */
export function describeScan(session: Session, detail: ScanDetail, nowMs: number): string[] {
  const { stdout, environment } = session.surroundings;
  const space = {
    width: widthOf(stdout),
    rows: Number.POSITIVE_INFINITY,
    colour: wantsColour(stdout, environment),
    unicode: wantsUnicode(environment),
  };
  const figures = { elapsedMs: elapsedMs(detail, nowMs), tasksPerSecond: null, silentMs: null };
  const records = Object.entries(detail.records).map(([type, count]) => `${count} ${type}`);
  return [
    ...renderScanProgress(detail, figures, space),
    '',
    ...facts([
      ['definition', `${detail.definition}, revision ${detail.revision}${detail.pinned ? ', pinned' : ''}`],
      ['created', formatTime(detail.createdAt)],
      [
        'finished',
        detail.finishedAt === null
          ? null
          : `${formatTime(detail.finishedAt)}, after ${formatDuration(figures.elapsedMs)}`,
      ],
      ['last tick', formatTime(detail.lastTickAt)],
      ['scope', detail.scope.allow.join(', ')],
      ['but not', detail.scope.deny.join(', ')],
      ['records', records.join(', ')],
      ['in Temporal', detail.temporalWorkflowId],
    ]),
  ];
}
