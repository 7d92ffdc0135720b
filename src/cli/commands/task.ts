import { type Command, Option } from 'commander';
import type { TaskView } from '#sonar/contracts/scan-api.ts';
import { type TaskStatus, taskStatuses } from '#sonar/contracts/states.ts';
import { formatDuration } from '../figures.ts';
import { itemText } from '../item-text.ts';
import { retryLines } from '../retry-lines.ts';
import type { Run } from '../session.ts';
import type { Column } from '../table.ts';
import { taskTones } from '../tone.ts';
import { addPageOptions, type PageOptions, scanId } from '../word-parsers.ts';

type ListOptions = PageOptions & { scan: string; step?: string; status?: TaskStatus };

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
    .description('one task')
    .argument('<id>', 'a task')
    .action((id: string) =>
      run(async (session) => {
        const client = await session.api();
        session.answer(await client.task(id), (shown) => session.table(columns, [shown]));
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
    ...(row.badRecords === 0 ? [] : [`${row.badRecords} bad records`]),
    ...row.warnings,
  ];
  return remarks.length === 0 ? null : remarks.join('; ');
}
