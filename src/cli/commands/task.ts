import { type Command, Option } from 'commander';
import type { TaskView } from '#sonar/contracts/scan-api.ts';
import { type TaskStatus, taskStatuses } from '#sonar/contracts/states.ts';
import { formatDuration } from '../figures.ts';
import { itemText } from '../item-text.ts';
import { retryLines } from '../retry-lines.ts';
import type { Run } from '../session.ts';
import type { Column } from '../table.ts';
import type { LogsOptions, OutputOptions } from '../task-output.ts';
import { taskTones } from '../tone.ts';
import { addPageOptions, type PageOptions, positiveInteger, scanId } from '../word-parsers.ts';

type ListOptions = PageOptions & { scan: string; step?: string; status?: TaskStatus };

/** More have only tasks that nobody can help by looking at them all. */
const shownAttempts = 1_000;

const columns: Column<TaskView>[] = [
  { title: 'ID', cell: (row) => row.id },
  { title: 'STEP', cell: (row) => row.step, shrinkTo: 8 },
  {
    title: 'STATUS',
    cell: (row) => ({ text: row.noWork ? 'NoWork' : row.status, tone: taskTones[row.status] }),
  },
  { title: 'ITEM', cell: (row) => itemText(row.item), shrinkTo: 12 },
  { title: 'WORKER', cell: (row) => row.worker, shrinkTo: 8 },
  { title: 'TRIES', align: 'right', cell: (row) => row.attempts },
  { title: 'TIME', align: 'right', cell: durationOf },
  { title: 'RECORDS', align: 'right', cell: (row) => row.records },
  { title: 'REMARK', cell: remarkOf, shrinkTo: 16 },
];

export function addTaskCommands(program: Command, run: Run): void {
  const task = program.command('task').description('the single commands of a scan');
  addPageOptions(task.command('list').description('tasks of a scan'))
    .addOption(new Option('--scan <id>', 'a scan, or latest').argParser(scanId).makeOptionMandatory())
    .option('--step <step>', 'only those of this step')
    .addOption(new Option('--status <status>', 'only those in this state').choices(taskStatuses))
    .action(({ limit, after, scan, step, status }: ListOptions) =>
      run(async (session) => {
        const client = await session.api();
        const filter = {
          scan,
          ...(step === undefined ? {} : { step }),
          ...(status === undefined ? {} : { status }),
        };
        session.answerList(await client.tasks.take(filter, limit, after), columns, 'no such tasks');
      }),
    );

  task
    .command('show')
    .description('one task with all its attempts: their workers, how they ended, whether the result was read')
    .argument('<id>', 'a task')
    .action((id: string) =>
      run(async (session) => {
        const client = await session.api();
        const [shown, { items }] = await Promise.all([
          client.task(id),
          client.taskAttempts(id).take({}, shownAttempts),
        ]);
        const { describeTask } = await import('../task-description.ts');
        session.answer({ ...shown, attemptList: items }, () =>
          describeTask(session, { task: shown, attempts: items }),
        );
      }),
    );

  task
    .command('logs')
    .description('what its command said on standard output and standard error, and how it ended')
    .argument('<id>', 'a task')
    .option('--attempt <n>', 'of this attempt; the newest with a result unless given', positiveInteger)
    .option('--stdout', 'standard output alone')
    .option('--stderr', 'standard error alone')
    .action((id: string, options: LogsOptions) =>
      run(async (session) => {
        const { showLogs } = await import('../task-output.ts');
        await showLogs(session, id, options);
      }),
    );

  addPageOptions(task.command('output').description('the files that its command left, or one of them'))
    .argument('<id>', 'a task')
    .option('--attempt <n>', 'of this attempt; the newest with a result unless given', positiveInteger)
    .option('--output <name>', 'a file of this output')
    .option('--path <path>', 'the file of this path')
    .option('-o, --to <file>', 'write it there; onto the terminal or into the pipe unless given')
    .action((id: string, options: OutputOptions) =>
      run(async (session) => {
        const { showOutput } = await import('../task-output.ts');
        await showOutput(session, id, options);
      }),
    );

  task
    .command('retry')
    .description('try a Failed or Cancelled task again; what rested on it is made anew')
    .argument('<id>', 'a task')
    .action((id: string) =>
      run(async (session) => {
        const client = await session.api();
        session.answer(await client.retryTask(id), retryLines);
      }),
    );
}

function durationOf(row: TaskView): string | null {
  if (row.startedAt === null || row.finishedAt === null) return null;
  return formatDuration(Date.parse(row.finishedAt) - Date.parse(row.startedAt));
}

function remarkOf(row: TaskView): string | null {
  const remarks = [
    ...(row.failure === null ? [] : [`${row.failure.code}: ${row.failure.message}`]),
    ...(row.exitCode === null || row.exitCode === 0 ? [] : [`exit ${row.exitCode}`]),
    ...(row.releases === 0 ? [] : [`given back ${row.releases}×`]),
    ...(row.badRecords === 0 ? [] : [`${row.badRecords} bad records`]),
    ...(row.lastRecovery === null ? [] : [recoveryOf(row, row.lastRecovery)]),
    ...row.warnings,
  ];
  return remarks.length === 0 ? null : remarks.join('; ');
}

/** "taken back from w1 (worker_absent), lost 2 times". */
function recoveryOf(
  { recoveries }: TaskView,
  { rule, worker }: NonNullable<TaskView['lastRecovery']>,
): string {
  const from = worker === null ? '' : ` from ${worker}`;
  return `taken back${from} (${rule})${recoveries > 1 ? `, lost ${recoveries} times` : ''}`;
}
