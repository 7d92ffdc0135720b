import type { Command } from 'commander';
import { formatTime } from '../figures.ts';
import type { Run } from '../session.ts';
import { workerTones } from '../tone.ts';
import { addPageOptions, type PageOptions } from '../word-parsers.ts';

/** Gives the noun, for the command that starts a worker on this machine. */
export function addWorkerCommands(program: Command, run: Run): Command {
  const worker = program.command('worker').description('the machines that run commands');
  addPageOptions(worker.command('list').description('workers of the last hour')).action(
    (options: PageOptions) =>
      run(async (session) => {
        const client = await session.api();
        const page = await client.workers.take({}, options.limit, options.after);
        session.answerList(
          page,
          [
            { title: 'NAME', cell: (row) => row.name, shrinkTo: 10 },
            { title: 'STATE', cell: (row) => ({ text: row.state, tone: workerTones[row.state] }) },
            { title: 'TAGS', cell: (row) => row.tags.join(', '), shrinkTo: 10 },
            { title: 'SLOTS', align: 'right', cell: (row) => row.slots },
            { title: 'FREE', align: 'right', cell: (row) => row.freeSlots },
            { title: 'TASKS', align: 'right', cell: (row) => row.attempts },
            { title: 'LOCATION', cell: (row) => row.location, shrinkTo: 8 },
            { title: 'LAST PULSE', cell: (row) => formatTime(row.lastPulseAt) },
          ],
          'no workers; start one with: sonar worker start --name NAME --tags TAG',
        );
        if (page.hold !== null) session.hint(`until ${formatTime(page.hold.until)}: ${page.hold.note}`);
      }),
  );
  return worker;
}
