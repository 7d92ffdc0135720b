// What the Temporal UI shows of a scan: a table of its steps, and a line on each wait that says what happened.
import { type ActivityFailure, ApplicationFailure } from '@temporalio/common';
import type { PlanReport, StepSummary } from '#sonar/contracts/activities.ts';

/** Markdown for the workflow's current details; `fault` says why the last tick came to nothing. */
export function detailsOf(report: PlanReport | undefined, fault?: string): string {
  const lines = fault === undefined ? [] : [`**The last tick failed:** ${cell(fault)}`, ''];
  if (report === undefined) return lines.join('\n');
  const rows = report.steps.map((step) =>
    [
      cell(step.step),
      cell(step.state),
      step.pending,
      step.inFlight,
      step.completed,
      step.failed,
      cell(
        [
          step.noWork > 0 ? `${step.noWork} without work` : '',
          step.cancelled > 0 ? `${step.cancelled} cancelled` : '',
          step.note,
        ]
          .filter(Boolean)
          .join('; '),
      ),
    ].join(gap),
  );
  return [
    ...lines,
    `**${cell(report.name)}** — ${report.status ?? 'gone'}${report.reason === '' ? '' : `: ${cell(report.reason)}`}`,
    '',
    ['step', 'state', 'pending', 'in flight', 'done', 'failed', 'note'].join(gap),
    '--- | --- | --: | --: | --: | --: | ---',
    ...rows,
  ].join('\n');
}

/** The UI draws tables without any space between columns. */
const gap = '\u00a0\u00a0 | ';

// What an operator reads at a glance; longer text only fills the history.
const maxCell = 200;
/** Names and notes may quote targets: nothing in them ends a line or a cell, marks up, links or shows a picture. */
const cell = (text: string): string =>
  text
    .replaceAll(/[\s\p{Cc}]+/gu, ' ')
    .slice(0, maxCell)
    .toWellFormed()
    .replaceAll(/[\\|<>&`*_~[\]!#]/g, String.raw`\$&`);

/** The innermost cause of an activity's failure, with its code. */
export function faultOf(failure: ActivityFailure): string {
  const { cause } = failure;
  const code = cause instanceof ApplicationFailure && cause.type ? `${cause.type}: ` : '';
  return `${failure.activityType} failed: ${code}${cause?.message ?? failure.message}`
    .replaceAll(/\s+/g, ' ')
    .slice(0, maxCell)
    .toWellFormed();
}

/** What changed between two reports: "made 9; placed 8 on nmap; recovered 1 lost task; completed 3 of ports". */
export function changesOf(
  before: PlanReport | undefined,
  now: PlanReport,
  done: { placed: string; recovered: string },
): string {
  const parts: string[] = [];
  if (now.made > 0) parts.push(`made ${now.made}`);
  if (done.placed !== '') parts.push(`placed ${done.placed}`);
  if (done.recovered !== '') parts.push(`recovered ${done.recovered}`);
  for (const step of now.steps) {
    const earlier = before?.steps.find((candidate) => candidate.step === step.step);
    add(parts, 'completed', step, earlier, (summary) => summary.completed);
    add(parts, 'failed', step, earlier, (summary) => summary.failed);
    add(parts, 'cancelled', step, earlier, (summary) => summary.cancelled);
    if (step.state !== earlier?.state && step.state !== 'open' && step.state !== 'waiting')
      parts.push(`${step.step} is ${step.state}`);
  }
  const inFlight = now.steps.reduce((sum, step) => sum + step.inFlight, 0);
  const waits = [
    inFlight > 0 ? `${inFlight} in flight` : '',
    ...now.steps.filter((step) => step.note.startsWith('starved')).map((step) => `${step.step} is starved`),
  ];
  return [...parts, ...waits.filter((wait) => wait !== '')].join('; ').slice(0, maxCell) || 'nothing changed';
}

function add(
  parts: string[],
  verb: string,
  step: StepSummary,
  earlier: StepSummary | undefined,
  count: (summary: StepSummary) => number,
): void {
  const more = count(step) - (earlier ? count(earlier) : 0);
  if (more > 0) parts.push(`${verb} ${more} of ${step.step}`);
}
