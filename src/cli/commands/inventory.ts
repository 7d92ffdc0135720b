import { type Command, Option } from 'commander';
import { type RecordType, recordTypes } from '#sonar/contracts/records.ts';
import { inventoryColumns } from '../inventory-table.ts';
import type { Run } from '../session.ts';
import { addPageOptions, type PageOptions, scanId } from '../word-parsers.ts';

type ListOptions = PageOptions & { type?: RecordType; scan?: string };

export function addInventoryCommands(program: Command, run: Run): void {
  const inventory = program.command('inventory').description('what all scans have found');
  addPageOptions(inventory.command('list').description('records by type and key'))
    .addOption(new Option('--type <type>', 'only records of this type').choices(recordTypes))
    .addOption(new Option('--scan <id>', 'only what this scan observed; a scan, or latest').argParser(scanId))
    .action(({ limit, after, type, scan }: ListOptions) =>
      run(async (session) => {
        const client = await session.api();
        const filter = { ...(type === undefined ? {} : { type }), ...(scan === undefined ? {} : { scan }) };
        session.answerList(
          await client.inventory.take(filter, limit, after),
          inventoryColumns,
          'nothing found so far',
        );
      }),
    );
}
