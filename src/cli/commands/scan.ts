import { type Command, Option } from 'commander';
import { type ScanStatus, scanStatuses } from '#sonar/contracts/states.ts';
import { scanExitCode } from '../exit-codes.ts';
import { formatTime } from '../figures.ts';
import { retryLines } from '../retry-lines.ts';
import { safeText } from '../safe-text.ts';
import type { RunOptions } from '../scan-run.ts';
import type { StartOptions } from '../scan-start.ts';
import type { Run } from '../session.ts';
import { scanTones } from '../tone.ts';
import {
  addPageOptions,
  gathered,
  type PageOptions,
  positiveInteger,
  scanId,
  wholeNumber,
} from '../word-parsers.ts';
import { addScanExport } from './inventory-export.ts';

export function addScanCommands(program: Command, run: Run): void {
  const scan = program.command('scan').description('start scans and see what they do');

  scan
    .command('start')
    .description('start a scan of a definition')
    .argument('<definition>', 'name of a definition that was applied')
    .option('--input <name=value>', 'an input, or name=@file of any size; may be repeated', gathered)
    .option(
      '--file <name=path>',
      'an input that is a file, or a list in one, uploaded; may be repeated',
      gathered,
    )
    .option('--allow <target>', 'domain, address or CIDR that may be scanned; may be repeated', gathered)
    .option('--deny <target>', 'what may not, though it lies in --allow; may be repeated', gathered)
    .option('--scope <file>', 'a YAML file with the lists allow: and deny:')
    .option('--name <name>', 'shown to people; the name of the definition unless given')
    .option('--key <key>', 'the same key never starts a second scan')
    .option('--pin', 'stay on the revision of now')
    .option('--wait', 'show the progress, and exit by the state the scan ends in')
    .action((definition: string, options: StartOptions) =>
      run(async (session) => {
        const { startScan } = await import('../scan-start.ts');
        return startScan(session, definition, options);
      }),
    );

  scan
    .command('run')
    .description('a scan of one command, without a definition file')
    .argument('<command...>', "after --, the program and its arguments; '${item}' is the item")
    .addOption(
      new Option('--tag <tag>', 'workers with this tag run it; may be repeated')
        .argParser(gathered)
        .makeOptionMandatory(),
    )
    .option(
      '--each <items>',
      'once for each: @FILE with one a line, - for standard input, or words between commas',
    )
    .option('--target <text>', "what is checked against the scope; '${item}' with --each")
    .option('--no-target', 'nothing is: the items are no hosts')
    .option('--allow <target>', 'domain, address or CIDR that may be scanned; may be repeated', gathered)
    .option('--deny <target>', 'what may not, though it lies in --allow; may be repeated', gathered)
    .option('--scope <file>', 'a YAML file with the lists allow: and deny:')
    .option(
      '--read <reader>',
      "how what it prints becomes records, or the file '${out.result}' where it names that",
    )
    .option('--timeout <duration>', 'how long one command may run, as 30m')
    .option('--retry <n>', 'attempts after the first', wholeNumber)
    .option('--max-concurrent <n>', 'commands at once', positiveInteger)
    .option('--name <name>', 'shown to people; the command unless given')
    .option('--key <key>', 'the same key never starts a second scan')
    .option('--wait', 'show the progress, and exit by the state the scan ends in')
    .addHelpText(
      'after',
      "\nExample:\n  sonar scan run --tag nmap --each @hosts.txt --allow 192.0.2.0/24 --read nmap-xml --wait -- nmap -oX - '${item}'",
    )
    .action((command: string[], options: RunOptions) =>
      run(async (session) => {
        const { runScan } = await import('../scan-run.ts');
        return runScan(session, command, options);
      }),
    );

  scan
    .command('watch')
    .description('show the progress until it ends, and exit by its state')
    .argument('<id>', 'a scan, or latest', scanId)
    .action((id: string) =>
      run(async (session) => {
        const { watchToItsEnd } = await import('../scan-start.ts');
        return watchToItsEnd(session, id, false);
      }),
    );

  addPageOptions(scan.command('list').description('scans, newest first'))
    .addOption(new Option('--status <status>', 'only those in this state').choices(scanStatuses))
    .action((options: PageOptions & { status?: ScanStatus }) =>
      run(async (session) => {
        const client = await session.api();
        const { limit, after, status } = options;
        session.answerList(
          await client.scans.take(status === undefined ? {} : { status }, limit, after),
          [
            { title: 'ID', cell: (row) => row.id },
            { title: 'STATUS', cell: (row) => ({ text: row.status, tone: scanTones[row.status] }) },
            { title: 'NAME', cell: (row) => row.name, shrinkTo: 10 },
            { title: 'DEFINITION', cell: (row) => row.definition, shrinkTo: 10 },
            { title: 'CREATED', cell: (row) => formatTime(row.createdAt) },
            { title: 'FINISHED', cell: (row) => formatTime(row.finishedAt) },
          ],
          'no such scans; start one with: sonar scan start DEFINITION',
        );
      }),
    );

  scan
    .command('show')
    .description('one scan with its steps')
    .argument('<id>', 'a scan, or latest', scanId)
    .action((id: string) =>
      run(async (session) => {
        const client = await session.api();
        const detail = await client.scan(id);
        const { describeScan } = await import('../scan-description.ts');
        session.answer(detail, (shown) => describeScan(session, shown, Date.now()));
      }),
    );

  scan
    .command('cancel')
    .description('cancel what is open; finished work stays in the inventory')
    .argument('<id>', 'a scan, or latest', scanId)
    .action((id: string) =>
      run(async (session) => {
        const client = await session.api();
        session.answer(await client.cancelScan(id), (cancelled) => [
          scanExitCode(cancelled.status) === null
            ? `${cancelled.id} is ${cancelled.status}; see its end with: sonar scan watch ${cancelled.id}`
            : `${cancelled.id} is ${cancelled.status}`,
        ]);
      }),
    );

  const changes = [
    ['pause', 'plan and place nothing more; what was dispatched goes on'],
    ['resume', 'go on where it was paused'],
  ] as const;
  for (const [event, description] of changes)
    scan
      .command(event)
      .description(description)
      .argument('<id>', 'a scan, or latest', scanId)
      .action((id: string) =>
        run(async (session) => {
          const client = await session.api();
          const changed = event === 'pause' ? await client.pauseScan(id) : await client.resumeScan(id);
          session.answer(changed, ({ id: changedId, status }) => [`${changedId} is ${status}`]);
        }),
      );

  addScanExport(scan, run);

  scan
    .command('retry')
    .description('try again what failed or was cancelled; what rested on it is made anew')
    .argument('<id>', 'a scan, or latest', scanId)
    .requiredOption('--failed', 'all Failed and Cancelled tasks; "sonar task retry ID" is for one')
    .action((id: string) =>
      run(async (session) => {
        const client = await session.api();
        session.answer(await client.retryScan(id), retryLines);
      }),
    );

  addPageOptions(
    scan
      .command('logs')
      .description('what happened in it, oldest first: placed, ended, failed, could not be read'),
  )
    .argument('<id>', 'a scan, or latest', scanId)
    .option('--follow', 'go on until it has ended')
    .action((id: string, options: PageOptions & { follow?: boolean }) =>
      run(async (session) => {
        const { showScanLogs } = await import('../scan-logs.ts');
        return showScanLogs(session, id, options);
      }),
    );

  scan
    .command('delete')
    .description('remove a scan that has ended, its files, and what only it saw in the inventory')
    .argument('<id>', 'a scan, or latest', scanId)
    .action((id: string) =>
      run(async (session) => {
        const client = await session.api();
        session.answer(await client.deleteScan(id), (deleted) => [
          `${deleted.id} (${safeText(deleted.name)}, ${deleted.status}) is gone from every list; its files and records are being removed`,
        ]);
      }),
    );
}
