// `sonar scan run`: a scan of one command, without a file.
import { randomUUID } from 'node:crypto';
import { SonarError } from '#sonar/platform/errors.ts';
import type { ExitCode } from './exit-codes.ts';
import { divideInputs, uploadLists } from './large-lists.ts';
import { definitionOf, eachInput } from './one-command.ts';
import { parseInputs, parseScope } from './scan-inputs.ts';
import { begin } from './scan-start.ts';
import type { Session } from './session.ts';

export interface RunOptions {
  tag: string[];
  each?: string;
  /** False: `--no-target`. */
  target?: string | false;
  allow?: string[];
  deny?: string[];
  scope?: string;
  read?: string;
  timeout?: string;
  retry?: number;
  maxConcurrent?: number;
  name?: string;
  key?: string;
  wait?: boolean;
}

export async function runScan(
  session: Session,
  command: readonly string[],
  options: RunOptions,
): Promise<ExitCode> {
  const items = options.each === undefined ? null : await itemsOf(session, options.each);
  // What is given item by item is what is touched, unless somebody says otherwise.
  const target = options.target === false ? null : (options.target ?? (items === null ? null : '${item}'));
  const { name, source } = definitionOf({
    command,
    tags: options.tag,
    each: items !== null,
    target,
    read: options.read ?? null,
    timeout: options.timeout ?? null,
    retry: options.retry ?? null,
    maxConcurrent: options.maxConcurrent ?? null,
  });
  const { workingDirectory } = session.surroundings;
  const { small, large } = divideInputs(items === null ? [] : [items], workingDirectory);
  const scope = parseScope(options, workingDirectory);
  const inputs = parseInputs(small, workingDirectory);
  const client = await session.api();
  if (target === null)
    session.hint('nothing of this command is checked against the scope; --target names what is touched');
  await client.applyDefinition(source);
  Object.assign(inputs, await uploadLists(client, large, workingDirectory));
  return begin(
    session,
    client,
    {
      definition: name,
      name: options.name ?? command.join(' ').slice(0, 200),
      clientKey: options.key ?? `cli-${randomUUID()}`,
      inputs,
      // Somebody might apply another text under the name.
      pin: true,
      ...(scope === undefined ? {} : { scope }),
    },
    options.wait ?? false,
  );
}

/** `@file`, `-` for standard input, or words between commas; as a word of `--input`, which large files pass as well. */
async function itemsOf(session: Session, each: string): Promise<string> {
  const text = each === '-' ? await session.surroundings.readStdin() : each;
  const items = each === '-' || each.startsWith('@') ? text : text.replaceAll(/\s*,\s*/g, '\n');
  if (items.trim() === '' || items === '@')
    throw new SonarError(
      'usage',
      `--each ${each}: there are no items; give @FILE with one a line, - for standard input, or words between commas`,
    );
  // What comes from standard input may begin with an @ and means itself.
  const own = each === '-' && items.startsWith('@') ? `@${items}` : items;
  return `${eachInput}=${each === '-' ? own.replaceAll('\r\n', '\n').replace(/\n+$/, '') : own}`;
}
