// `inventory export` and `scan export`: the same records, of all scans or of one.
import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import type { InventoryQuery } from '../api-client.ts';
import { counted } from '../figures.ts';
import {
  addFilterOptions,
  type ExportFormat,
  exportFormats,
  type FilterOptions,
  filterOf,
} from '../inventory-filter.ts';
import { safeText } from '../safe-text.ts';
import type { Run, Session } from '../session.ts';
import { scanId } from '../word-parsers.ts';

type ExportOptions = FilterOptions & { format: ExportFormat; output?: string };

const formats = `
JSON Lines are the records as "sonar inventory list --json" has them. CSV has a column a field, with formulas defused by
a single quote. A file gets its name when all is in it; an export that ends early ends with a fault.`;

export function addInventoryExport(inventory: Command, run: Run): void {
  withOptions(
    inventory.command('export').description('records as JSON Lines or CSV, in the order of type and key'),
  )
    .addOption(
      new Option('--scan <id>', 'what this scan saw, as it saw it; a scan, or latest').argParser(scanId),
    )
    .action(({ scan, ...options }: ExportOptions & { scan?: string }) =>
      run((session) =>
        exportTo(session, { ...filterOf(options), ...(scan === undefined ? {} : { scan }) }, options),
      ),
    );
}

export function addScanExport(scan: Command, run: Run): void {
  withOptions(
    scan
      .command('export')
      .description('what a scan saw, as it saw it, as JSON Lines or CSV')
      .argument('<id>', 'a scan, or latest', scanId),
  ).action((id: string, options: ExportOptions) =>
    run((session) => exportTo(session, { ...filterOf(options), scan: id }, options)),
  );
}

const withOptions = (command: Command): Command =>
  addFilterOptions(command)
    .addOption(new Option('--format <format>', 'of the file').choices(exportFormats).default('jsonl'))
    .option('-o, --output <file>', 'where to; standard output unless given')
    .addHelpText('after', formats);

async function exportTo(
  session: Session,
  filter: InventoryQuery,
  { format, output }: ExportOptions,
): Promise<void> {
  const client = await session.api();
  const { exportRecords } = await import('../export-records.ts');
  const { workingDirectory, stdout } = session.surroundings;
  const file = output === undefined ? null : resolve(workingDirectory, output);
  const exported = await exportRecords(client.inventory.pages(filter), format, file, stdout);
  const lines = [
    `${counted(exported.records, 'record')}${exported.partial > 0 ? `, ${exported.partial} of them partial` : ''}`,
    ...exported.warnings.map((warning) => `warning: ${safeText(warning)}`),
  ];
  if (file === null) for (const line of lines) session.hint(line);
  else session.answer({ file, ...exported }, () => [`${safeText(file)}: ${lines[0]}`, ...lines.slice(1)]);
}
