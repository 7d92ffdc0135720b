import { type Command, Option } from 'commander';
import type { PoisonItem } from '#sonar/contracts/poison-api.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { facts } from '../facts.ts';
import { formatTime } from '../figures.ts';
import { itemText } from '../item-text.ts';
import { repairLines } from '../retry-lines.ts';
import type { Run } from '../session.ts';
import type { Column } from '../table.ts';
import { addPageOptions, type PageOptions, scanId } from '../word-parsers.ts';

const columns: Column<PoisonItem>[] = [
  { title: 'ID', cell: (row) => row.id },
  { title: 'SCAN', cell: (row) => row.scan, shrinkTo: 8 },
  { title: 'STEP', cell: (row) => row.step, shrinkTo: 8 },
  { title: 'ITEM', cell: (row) => itemText(row.item), shrinkTo: 12 },
  { title: 'TRIES', align: 'right', cell: (row) => row.attempts },
  { title: 'SINCE', cell: (row) => formatTime(row.poisonedAt) },
  { title: 'ERROR', cell: (row) => row.error, shrinkTo: 20 },
];

export function addPoisonCommands(program: Command, run: Run): void {
  const poison = program
    .command('poison')
    .description('results that could not be read after so many tries, and how they are read again');

  addPageOptions(poison.command('list').description('what is poisoned, oldest first'))
    .addOption(new Option('--scan <id>', 'only of this scan; a scan, or latest').argParser(scanId))
    .action(({ limit, after, scan }: PageOptions & { scan?: string }) =>
      run(async (session) => {
        const client = await session.api();
        session.answerList(
          await client.poisoned.take(scan === undefined ? {} : { scan }, limit, after),
          columns,
          'nothing is poisoned',
        );
      }),
    );

  poison
    .command('show')
    .description('one of them, with its error and a sample of what could not be read')
    .argument('<id>', 'an id of "sonar poison list"')
    .action((id: string) =>
      run(async (session) => {
        const client = await session.api();
        session.answer(await client.poison(id), describe);
      }),
    );

  poison
    .command('retry')
    .description('read it again, for instance with a newer build; its scan is open until it is read')
    .argument('[id]', 'an id of "sonar poison list"')
    .option('--all', 'everything that is poisoned of the scan in --scan')
    .addOption(new Option('--scan <id>', 'with --all: a scan, or latest').argParser(scanId))
    .action((id: string | undefined, { all, scan }: { all?: boolean; scan?: string }) =>
      run(async (session) => {
        if (all ? id !== undefined || scan === undefined : id === undefined || scan !== undefined)
          throw new SonarError(
            'usage',
            'name one: sonar poison retry ID; or all of a scan: sonar poison retry --all --scan ID',
          );
        const client = await session.api();
        session.answer(
          all ? await client.repairAll(scan as string) : await client.repair(id as string),
          repairLines,
        );
      }),
    );
}

function describe(item: PoisonItem): string[] {
  return [
    ...facts([
      ['id', item.id],
      ['error', item.error],
      ['file', item.sample?.file ?? null],
      ['sample', item.sample?.text ?? null],
      ['size', `${item.size} bytes`],
      ['tries', `${item.attempts}, the last at ${formatTime(item.poisonedAt)}`],
      ['scan', `${item.scan} (${item.scanId})`],
      ['step', item.step],
      ['item', itemText(item.item)],
      ['task', `${item.taskId} is ${item.taskStatus}`],
      ['worker', item.worker],
    ]),
    '',
    `its files: sonar task output ${item.taskId}`,
    `read it again: sonar poison retry ${item.id}`,
  ];
}
