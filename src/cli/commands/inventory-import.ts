// `inventory import`: the file is uploaded by its hash, and read by the api in slices until all is in.
import { basename, resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { ImportRequest, ImportView } from '#sonar/contracts/inventory-api.ts';
import { type ReaderName, readerNames } from '#sonar/definition/reader-catalog.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { pause } from '#sonar/platform/wait.ts';
import { exitCodes } from '../exit-codes.ts';
import { counted, formatTime } from '../figures.ts';
import { typeOption } from '../inventory-filter.ts';
import { safeText } from '../safe-text.ts';
import type { Run, Session } from '../session.ts';
import { gathered } from '../word-parsers.ts';

interface ImportOptions {
  as?: ReaderName;
  type?: string;
  field?: string[];
}

const helpText = `
Examples:
  sonar inventory import domains.txt --type domain
  sonar inventory import nmap.xml --as nmap-xml
  sonar inventory import hosts.csv --as csv --type service --field address=ip --field port=port

The same file read in the same way is imported once: to import it again changes nothing, and one that was interrupted
goes on where it was.`;

export function addInventoryImport(inventory: Command, run: Run): void {
  inventory
    .command('import')
    .description('bring a list, or the output of a tool, into the inventory')
    .argument('<file>', 'the file')
    .addOption(new Option('--as <reader>', 'how it is read; lines unless given').choices(readerNames))
    .addOption(typeOption('the record that each row makes, for readers without records of their own'))
    .option('--field <record=row>', 'a field of the record by a field of the row; may be repeated', fieldPair)
    .addHelpText('after', helpText)
    .action((file: string, options: ImportOptions) => run((session) => importFile(session, file, options)));
}

function fieldPair(word: string, before: string[] | undefined): string[] {
  if (!/^[^=]+=[^=]+$/.test(word)) throw new InvalidArgumentError('Write it as url=final.url.');
  return gathered(word, before);
}

const betweenSlicesMs = 200;
const betweenTriesMs = 2_000;

async function importFile(session: Session, file: string, options: ImportOptions): Promise<number> {
  if (options.as === undefined && options.type === undefined)
    throw new SonarError(
      'usage',
      'say how the file is read: --as READER, or --type TYPE for a list of lines',
    );
  const client = await session.api();
  const { uploadFile } = await import('../file-upload.ts');
  const path = resolve(session.surroundings.workingDirectory, file);
  const body: ImportRequest = {
    sha256: await uploadFile(client, path, 'import'),
    name: basename(path).slice(0, 255),
    read: {
      format: options.as ?? 'lines',
      ...(options.type === undefined ? {} : { record: options.type }),
      ...(options.field === undefined
        ? {}
        : { fields: Object.fromEntries(options.field.map((pair) => pair.split('=') as [string, string])) }),
    },
  };
  let created = false;
  let records = -1;
  for (;;) {
    const view = await client.importRecords(body);
    created ||= view.created;
    if (view.status !== 'due') {
      session.answer({ ...view, created }, () => importLines({ ...view, created }));
      return view.status === 'done' ? exitCodes.ok : exitCodes.fault;
    }
    session.hint(`${counted(view.records, 'record')} so far`);
    // Another process reads it, or the one that did died: its claim runs out within two minutes.
    await pause(view.records === records ? betweenTriesMs : betweenSlicesMs);
    records = view.records;
  }
}

function importLines(view: ImportView): string[] {
  const counts = `${counted(view.records, 'record')}, ${view.badRecords} bad`;
  return [
    view.status === 'failed'
      ? `${safeText(view.name)} could not be read: ${safeText(view.error ?? '')}`
      : view.created
        ? `${safeText(view.name)}: ${counts}`
        : `${safeText(view.name)} is in the inventory since ${formatTime(view.createdAt)}: ${counts}; nothing was added`,
    ...view.warnings.map((warning) => `warning: ${safeText(warning)}`),
  ];
}
