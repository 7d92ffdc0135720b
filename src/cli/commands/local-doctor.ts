import { join } from 'node:path';
import type { Command } from 'commander';
import type { ServiceFinding, ToolFinding } from '#sonar/stack/doctor.ts';
import { defaultDataDir } from '../connection-file.ts';
import { exitCodes } from '../exit-codes.ts';
import { safeText } from '../safe-text.ts';
import type { Run } from '../session.ts';
import type { Column } from '../table.ts';

const serviceColumns: Column<ServiceFinding>[] = [
  { title: 'SERVICE', cell: (row) => row.name },
  { title: 'FROM', cell: (row) => ({ text: row.source, tone: row.source === 'nowhere' ? 'bad' : 'plain' }) },
  { title: 'VERSION', cell: (row) => row.version ?? null },
  {
    title: 'ANSWERS',
    cell: (row) =>
      row.reachable === undefined
        ? null
        : { text: row.reachable ? 'yes' : 'no', tone: row.reachable ? 'good' : 'bad' },
  },
  { title: 'REMARK', cell: (row) => row.detail ?? null, shrinkTo: 20 },
];

const toolColumns: Column<ToolFinding>[] = [
  { title: 'TOOL', cell: (row) => row.name },
  {
    title: 'VERSION',
    cell: (row) => row.version ?? { text: 'missing', tone: row.optional ? 'warning' : 'bad' },
    shrinkTo: 10,
  },
  { title: 'FOR', cell: (row) => row.neededFor, shrinkTo: 20 },
];

export function addDoctorCommand(program: Command, run: Run): void {
  program
    .command('doctor')
    .description('say what "sonar up" would use, what is missing and how to get it; starts nothing')
    .option('--data <folder>', 'the data folder of the stack', defaultDataDir)
    .action(({ data }: { data: string }) =>
      run(async (session) => {
        const { diagnose } = await import('#sonar/stack/doctor.ts');
        const { environment, workingDirectory } = session.surroundings;
        const report = await diagnose(environment, join(workingDirectory, data));
        session.answer(report, ({ services, tools, faults }) => [
          ...session.table(serviceColumns, services),
          '',
          ...session.table(toolColumns, tools),
          '',
          ...faults.flatMap(({ subject, message, waysOut }) => [
            safeText(`${subject}: ${message}`),
            ...waysOut.map((way) => `  - ${safeText(way)}`),
          ]),
          report.healthy ? 'all is there: start it with "sonar up"' : '"sonar up" will not come up like this',
        ]);
        return report.healthy ? exitCodes.ok : exitCodes.fault;
      }),
    );
}
