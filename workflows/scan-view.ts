// What the Temporal UI shows of a scan: a table of its steps, and a line on each wait that says what happened.
import type { PlanReport, StepSummary } from '#sonar/contracts/activities.ts';

/** Markdown for the workflow's current details. Names come from definitions, notes may quote targets. */
export function detailsOf(report: PlanReport): string {
  const rows = report.steps.map((step) =>
    [
      step.step,
      step.state,
      step.tags,
      step.pending,
      step.inFlight,
      step.noWork > 0 ? `${step.completed} (${step.noWork} no work)` : step.completed,
      step.failed,
      step.cancelled,
      cell(step.note),
    ].join(' | '),
  );
  return [
    `**${cell(report.name)}** — ${report.status ?? 'gone'}${report.reason === '' ? '' : `: ${cell(report.reason)}`}`,
    '',
    'step | state | tags | pending | in flight | completed | failed | cancelled | note',
    '--- | --- | --- | --: | --: | --: | --: | --: | ---',
    ...rows,
  ].join('\n');
}

const maxCell = 200;
const cell = (text: string): string => text.replaceAll(/[\r\n|<>`*_[\]\\]/g, ' ').slice(0, maxCell);

/** What changed between two reports: "made 9; placed 8 on nmap; completed 3 of ports". */
export function changesOf(before: PlanReport | undefined, now: PlanReport, placed: string): string {
  const parts: string[] = [];
  if (now.made > 0) parts.push(`made ${now.made}`);
  if (placed !== '') parts.push(`placed ${placed}`);
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
