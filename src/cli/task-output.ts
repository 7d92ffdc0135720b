// `sonar task logs` and `sonar task output`.
import type { OutputView } from '#sonar/contracts/task-api.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import type { ApiClient } from './api-client.ts';
import { printFile, saveFile } from './download.ts';
import { safeLines } from './safe-lines.ts';
import { safeText } from './safe-text.ts';
import type { Session } from './session.ts';
import type { Column } from './table.ts';
import { logsHint } from './task-description.ts';
import type { PageOptions } from './word-parsers.ts';

export interface LogsOptions {
  attempt?: number;
  stdout?: boolean;
  stderr?: boolean;
}

/** Both streams, each on its own unless one is asked for: so a pipe gets the bytes as they were. */
export async function showLogs(session: Session, id: string, options: LogsOptions): Promise<void> {
  const client = await session.api();
  const logs = await client.taskLogs(id, options.attempt);
  if (session.json) {
    session.sayJson(logs);
    return;
  }
  const both = options.stdout === options.stderr;
  for (const name of ['stdout', 'stderr'] as const) {
    const stream = logs[name];
    if (stream === null || !(both || options[name])) continue;
    const bytes = Buffer.from(stream.head, 'base64');
    const sink = both && name === 'stderr' ? session.surroundings.stderr : session.surroundings.stdout;
    if (sink.isTerminal) for (const line of safeLines(bytes)) sink.write(`${line}\n`);
    else await sink.writeBytes(bytes);
  }
  for (const line of logsHint(id, logs)) session.hint(line);
}

export interface OutputOptions extends PageOptions {
  attempt?: number;
  output?: string;
  path?: string;
  to?: string;
}

const columns: Column<OutputView>[] = [
  { title: 'OUTPUT', cell: (row) => row.output, shrinkTo: 8 },
  { title: 'PATH', cell: (row) => row.path, shrinkTo: 20 },
  { title: 'SIZE', align: 'right', cell: (row) => row.size },
  { title: 'PARTIAL', cell: (row) => (row.partial ? 'partial' : null) },
  { title: 'SHA-256', cell: (row) => row.sha256, shrinkTo: 12 },
];

/** A list of the files, or one of them: the one that is named, or the only one of the output that is named. */
export async function showOutput(session: Session, id: string, options: OutputOptions): Promise<void> {
  const client = await session.api();
  if (options.output === undefined && options.path === undefined && options.to === undefined) {
    const files = await client.taskOutputs(id, { attempt: options.attempt }, options.limit, options.after);
    session.answerList(files, columns, 'its command left no files');
    if (files.items.length > 0)
      session.hint(`one of them: sonar task output ${id} --output NAME [--path PATH] [-o FILE]`);
    return;
  }
  const file = await oneFile(client, id, options);
  const place = await client.outputPlace(id, {
    output: file.output,
    path: file.path,
    attempt: file.attempt,
  });
  if (options.to !== undefined) await saveFile(session, place, options.to);
  else if (!session.json) {
    await printFile(session, place);
    return;
  }
  session.answer(place, () => [`${options.to}: ${place.size} bytes of ${safeText(place.path)}`]);
}

async function oneFile(client: ApiClient, id: string, options: OutputOptions): Promise<OutputView> {
  const { output, attempt, path } = options;
  const { items } = await client.taskOutputs(id, { output, attempt }, 10_000, null);
  const fitting = items.filter((file) => path === undefined || file.path === path);
  const [only, another] = fitting;
  const where = `${output === undefined ? '' : ` in output "${output}"`}${path === undefined ? '' : ` at "${path}"`}`;
  if (only === undefined)
    throw new SonarError(
      'not_found',
      `task ${id} left no file${where}; list them with: sonar task output ${id}`,
    );
  if (another !== undefined)
    throw new SonarError(
      'usage',
      `task ${id} left ${fitting.length} files${where}; name one with --output NAME --path PATH; list them with: sonar task output ${id}`,
    );
  return only;
}
