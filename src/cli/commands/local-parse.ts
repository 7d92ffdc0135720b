// `sonar parse`: what a reader would make of a file, on this machine, without a scan.
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { ReadSpec } from '#sonar/contracts/definition.ts';
import { type RecordType, recordTypes } from '#sonar/contracts/records.ts';
import { type ReaderName, readerCatalog, readerNames } from '#sonar/definition/reader-catalog.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { exitCodes } from '../exit-codes.ts';
import type { ParsedFile } from '../parsed-file.ts';
import type { Run } from '../session.ts';
import { gathered, positiveInteger } from '../word-parsers.ts';

interface ParseOptions {
  as: ReaderName;
  record?: RecordType;
  field?: string[];
  rows?: true;
  limit: number;
}

const helpText = `
Readers:
${readerNames.map((name) => `  ${name.padEnd(10)} ${readerCatalog[name].reads}`).join('\n')}

Examples:
  sonar parse nmap.xml --as nmap-xml
  httpx -l hosts.txt -json | sonar parse - --as httpx --json
  sonar parse hosts.csv --as csv --record service --field address=ip --field port=port

Exit codes: 0 read, 1 nothing good in it but something bad, 2 usage.`;

export function addParseCommand(program: Command, run: Run): void {
  program
    .command('parse')
    .description('what a reader makes of a file: rows, records, bad records; nothing is stored')
    .argument('<file>', 'output of a tool; - reads standard input')
    .addOption(
      new Option('--as <reader>', 'the reader, as in `read` of a definition')
        .choices(readerNames)
        .makeOptionMandatory(),
    )
    .addOption(
      new Option('--record <type>', 'the record that each row makes, for readers without their own').choices(
        recordTypes,
      ),
    )
    .option('--field <record=row>', 'a field of the record by a field of the row; may be repeated', fieldPair)
    .option('--rows', 'show rows, too')
    .option('--limit <n>', 'show at most so many of each; all are read and counted', positiveInteger, 1000)
    .addHelpText('after', helpText)
    .action((file: string, options: ParseOptions) =>
      run(async (session) => {
        const spec = specOf(options);
        const { parsedLines } = await import('../parsed-file.ts');
        const { parsed, good } = await parse(
          file,
          spec,
          options.limit,
          session.surroundings.workingDirectory,
        );
        session.answer(parsed, (value) => parsedLines(session, value, options.rows === true));
        return good === 0 && parsed.counts.bad > 0 ? exitCodes.fault : exitCodes.ok;
      }),
    );
}

function fieldPair(word: string, before: string[] | undefined): string[] {
  if (!/^[^=]+=[^=]+$/.test(word)) throw new InvalidArgumentError('Write it as url=final.url.');
  return gathered(word, before);
}

function specOf({ as, record, field = [] }: ParseOptions): ReadSpec {
  if (readerCatalog[as].ownRecords && record !== undefined)
    throw new SonarError('usage', `--record: the reader ${as} makes its own records`);
  if (record === undefined && field.length > 0)
    throw new SonarError('usage', '--field: name the record with --record');
  const fields = Object.fromEntries(field.map((pair) => pair.split('=') as [string, string]));
  return { reader: as, record: record ?? null, fields };
}

/** As finalization does it: a row counts as good where none of its records was refused. */
async function parse(
  file: string,
  spec: ReadSpec,
  limit: number,
  workingDirectory: string,
): Promise<{ parsed: ParsedFile; good: number }> {
  const { summarizeReading } = await import('#sonar/readers/read-summary.ts');
  const bytes = await bytesOf(file, workingDirectory);
  const { summary, good } = await summarizeReading(bytes, spec, limit);
  return { parsed: { file, reader: spec.reader, ...summary }, good };
}

async function bytesOf(file: string, workingDirectory: string): Promise<AsyncIterable<Uint8Array>> {
  if (file === '-') return createReadStream('', { fd: 0, autoClose: false });
  const { unreadable } = await import('../scan-inputs.ts');
  try {
    const handle = await open(resolve(workingDirectory, file));
    if ((await handle.stat()).isDirectory()) {
      await handle.close();
      throw Object.assign(new Error('a folder'), { code: 'EISDIR' });
    }
    return handle.createReadStream();
  } catch (error) {
    throw unreadable(file, 'parse', error);
  }
}
