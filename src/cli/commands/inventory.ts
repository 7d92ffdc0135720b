import { type Command, Option } from 'commander';
import { type Change, changes } from '#sonar/contracts/changes.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import type { DiffQuery } from '../api-client.ts';
import { addFilterOptions, type FilterOptions, filterOf, typeOption } from '../inventory-filter.ts';
import { diffColumns, inventoryColumns } from '../inventory-table.ts';
import { safeJson, safeText } from '../safe-text.ts';
import type { Run, Session } from '../session.ts';
import { addPageOptions, type PageOptions, scanId } from '../word-parsers.ts';
import { addInventoryExport } from './inventory-export.ts';
import { addInventoryImport } from './inventory-import.ts';

type ListOptions = PageOptions & FilterOptions & { scan?: string };
type DiffOptions = PageOptions & { type?: string; change?: Change; definition?: string; all?: true };

export function addInventoryCommands(program: Command, run: Run): void {
  const inventory = program.command('inventory').description('what all scans have found');
  addFilterOptions(addPageOptions(inventory.command('list').description('records by type and key')))
    .addOption(
      new Option('--scan <id>', 'only what this scan saw, as it saw it; a scan, or latest').argParser(scanId),
    )
    .action(({ limit, after, scan, ...options }: ListOptions) =>
      run(async (session) => {
        const client = await session.api();
        const filter = { ...filterOf(options), ...(scan === undefined ? {} : { scan }) };
        const page = await client.inventory.take(filter, limit, after);
        for (const warning of page.warnings) session.hint(`warning: ${safeText(warning)}`);
        session.answerList(page, inventoryColumns, 'nothing found so far');
      }),
    );
  addPageOptions(
    inventory
      .command('diff')
      .description('what a later scan saw otherwise than an earlier one')
      .argument('[from]', 'the earlier scan, or latest', scanId)
      .argument('[to]', 'the later scan, or latest', scanId),
  )
    .option('--definition <name>', 'the last two scans of it that ended, in place of FROM and TO')
    .addOption(typeOption('only records of this type'))
    .addOption(new Option('--change <change>', 'only these').choices(changes))
    .option('--all', 'every difference, one JSON value a line')
    .addHelpText('after', diffHelp)
    .action((from: string | undefined, to: string | undefined, options: DiffOptions) =>
      run((session) => diff(session, { from, to }, options)),
    );
  addInventoryExport(inventory, run);
  addInventoryImport(inventory, run);
  inventory
    .command('types')
    .description("Sonar's own record types, and those that definitions declare")
    .action(() =>
      run(async (session) => {
        const client = await session.api();
        session.answerList(
          { ...(await client.recordTypes()), next: null },
          [
            { title: 'TYPE', cell: (row) => row.name },
            { title: 'KEY', cell: (row) => row.key.join(', ') },
            { title: 'DECLARED BY', cell: (row) => row.declaredBy ?? 'Sonar' },
          ],
          'there are none',
        );
      }),
    );
}

const diffHelp = `
A record is "gone" only where the steps that showed it, and all that they need, wholly completed in both scans, and the
later scan was given all that the earlier one was. Where that is not so it is "unknown", with the reason.`;

async function diff(
  session: Session,
  { from, to }: { from: string | undefined; to: string | undefined },
  { definition, type, change, limit, after, all }: DiffOptions,
): Promise<void> {
  const named = [from, to].filter((id) => id !== undefined).length;
  if (definition === undefined ? named !== 2 : named !== 0)
    throw new SonarError('usage', 'name two scans, FROM and TO, or --definition NAME alone');
  const query: DiffQuery = Object.fromEntries(
    Object.entries({ from, to, definition, type, change }).filter(([, value]) => value !== undefined),
  );
  const client = await session.api();
  if (all) {
    const { said } = await import('../export-records.ts');
    for await (const page of client.inventoryDiff.pages(query))
      await said(session.surroundings.stdout, page.items.map((item) => `${safeJson(item, 0)}\n`).join(''));
    return;
  }
  const page = await client.inventoryDiff.take(query, limit, after);
  session.hint(`from ${scanLine(page.from)}`);
  session.hint(`to   ${scanLine(page.to)}`);
  session.answerList(page, diffColumns, 'no differences');
  if (page.unjudged.length > 0) {
    session.hint('what is not seen any more cannot be judged everywhere:');
    for (const { reason } of page.unjudged) session.hint(`  ${safeText(reason)}`);
  }
}

const scanLine = (scan: { id: string; name: string; status: string; createdAt: string }): string =>
  safeText(`${scan.id} ${scan.name}, ${scan.status}, ${scan.createdAt}`);
