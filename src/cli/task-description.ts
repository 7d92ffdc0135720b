// One task with all its attempts, and what their commands said.
import type { TaskView } from '#sonar/contracts/scan-api.ts';
import type { AttemptView, TaskLogs } from '#sonar/contracts/task-api.ts';
import { facts } from './facts.ts';
import { counted, formatDuration, formatTime } from './figures.ts';
import { itemText } from './item-text.ts';
import { safeText } from './safe-text.ts';
import type { Session } from './session.ts';
import type { Column } from './table.ts';
import type { Tone } from './tone.ts';

const endTones: Record<string, Tone> = {
  completed: 'good',
  failed: 'bad',
  timed_out: 'bad',
  not_started: 'bad',
  released: 'warning',
  recovered: 'warning',
};

const attemptColumns: Column<AttemptView>[] = [
  { title: 'ATTEMPT', align: 'right', cell: (row) => row.number },
  { title: 'WORKER', cell: (row) => row.worker, shrinkTo: 8 },
  { title: 'TAG', cell: (row) => row.tag, shrinkTo: 6 },
  { title: 'PLACED', cell: (row) => formatTime(row.placedAt) },
  { title: 'TIME', align: 'right', cell: timeOf },
  { title: 'END', cell: (row) => ({ text: endOf(row), tone: endTones[endOf(row)] ?? 'plain' }) },
  { title: 'EXIT', align: 'right', cell: (row) => row.exitCode ?? row.signal },
  { title: 'FILES', align: 'right', cell: (row) => row.files },
  { title: 'READ', cell: (row) => row.finalization?.status ?? null },
  { title: 'REMARK', cell: remarkOf, shrinkTo: 16 },
];

function timeOf(row: AttemptView): string | null {
  if (row.startedAt === null || row.endedAt === null) return null;
  return formatDuration(Date.parse(row.endedAt) - Date.parse(row.startedAt));
}

const endOf = (row: AttemptView): string =>
  row.outcome ?? row.endReason ?? (row.startedAt === null ? 'waiting' : 'running');

function remarkOf(row: AttemptView): string | null {
  const remarks = [
    ...(row.failure === null ? [] : [`${row.failure.code}: ${row.failure.message}`]),
    ...(row.endDetail === null ? [] : [row.endDetail]),
    ...(row.finalization?.error ? [row.finalization.error] : []),
  ];
  return remarks.join('; ') || null;
}

export function describeTask(
  session: Session,
  { task, attempts }: { task: TaskView; attempts: readonly AttemptView[] },
): string[] {
  const poison = attempts.find((attempt) => attempt.finalization?.status === 'poisoned')?.finalization;
  return [
    ...facts([
      ['task', task.id],
      ['scan', task.scanId],
      ['step', task.step],
      ['item', itemText(task.item)],
      ['status', task.noWork ? 'Completed, there was nothing to do' : task.status],
      ['failure', task.failure && `${task.failure.code}: ${task.failure.message}`],
      ['parent', task.parentTaskId],
      ['records', task.records > 0 ? `${task.records}, and ${counted(task.badRecords, 'bad one')}` : null],
      ['warnings', task.warnings.join('; ')],
    ]),
    ...(attempts.length === 0 ? [] : ['', ...session.table(attemptColumns, attempts)]),
    '',
    ...(attempts.length === 0 ? [] : [`what its command said: sonar task logs ${task.id}`]),
    ...(attempts.some((attempt) => attempt.files > 0) ? [`its files: sonar task output ${task.id}`] : []),
    ...(poison ? [`read it again: sonar poison retry ${poison.id}`] : []),
    ...(task.status === 'Failed' || task.status === 'Cancelled'
      ? [`try it again: sonar task retry ${task.id}`]
      : []),
  ];
}

/** What there is to say of an attempt beside what its command said itself. */
export function logsHint(taskId: string, { attempt, stdout, stderr }: TaskLogs): string[] {
  const failure = attempt.failure === null ? '' : `; ${attempt.failure.code}: ${attempt.failure.message}`;
  const exit = attempt.exitCode === null ? (attempt.signal ?? '') : `exit ${attempt.exitCode}`;
  const lines = [
    `attempt ${attempt.number} on ${attempt.worker ?? 'no worker yet'}: ${[endOf(attempt), exit].filter(Boolean).join(', ')}${failure}`,
  ];
  if (stdout?.output)
    lines.push(
      `its standard output is a file: sonar task output ${taskId} --output ${stdout.output.output} --path ${stdout.output.path}`,
    );
  for (const [name, stream] of Object.entries({ stdout, stderr }))
    if (stream?.truncated && stream.output === null)
      lines.push(`of ${name} only the first ${headBytes(stream.head)} of ${stream.size} bytes are kept`);
  return lines.map(safeText);
}

const headBytes = (head: string): number => Buffer.from(head, 'base64').length;
