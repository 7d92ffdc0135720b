// What a scan is started with, from the words of a command line and the files they name.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseDocument } from 'yaml';
import type { Scope } from '#sonar/contracts/definition.ts';
import { scopeSchema } from '#sonar/contracts/scan-api.ts';
import { SonarError } from '#sonar/platform/errors.ts';

/** Reads a UTF-8 file named on the command line. @throws SonarError `usage` that names `option` and the file. */
export function readNamedFile(file: string, option: string, workingDirectory: string): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(resolve(workingDirectory, file));
  } catch (error) {
    throw unreadable(file, option, error);
  }
  try {
    // Strips a byte order mark too.
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw new SonarError('usage', `${option}: ${file} is not UTF-8 text; convert it: iconv -t UTF-8`, {
      cause: error,
    });
  }
}

/** The fault of a file that the system does not let be read. */
export function unreadable(file: string, option: string, error: unknown): SonarError {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  const reasons: Record<string, string> = {
    ENOENT: 'there is no such file',
    EISDIR: 'it is a folder, not a file',
    EACCES: 'you may not read it',
  };
  return new SonarError('usage', `${option}: ${file} cannot be read: ${reasons[code] ?? code}`, {
    cause: error,
  });
}

/**
 * Inputs from `name=value`, `name=@file` and `name=@@text` for a value that starts with `@`. A name that is
 * given several times becomes a list; a file counts as its lines then.
 * @throws SonarError `usage`
 */
export function parseInputs(
  words: readonly string[],
  workingDirectory: string,
): Record<string, string | string[]> {
  const values = new Map<string, string[]>();
  for (const word of words) {
    const at = word.indexOf('=');
    if (at <= 0) throw new SonarError('usage', `--input ${word}: write it as name=value or name=@file`);
    const name = word.slice(0, at);
    const text = inputText(name, word.slice(at + 1), workingDirectory);
    values.set(name, [...(values.get(name) ?? []), text]);
  }
  const inputs: [string, string | string[]][] = [...values].map(([name, texts]) => [
    name,
    texts.length === 1 ? (texts[0] as string) : texts.flatMap((text) => text.split('\n')),
  ]);
  // An input called __proto__ stays an input.
  return Object.fromEntries(inputs);
}

function inputText(name: string, value: string, workingDirectory: string): string {
  if (value.startsWith('@@')) return value.slice(1);
  if (!value.startsWith('@')) return value;
  const file = value.slice(1);
  if (file === '') throw new SonarError('usage', `--input ${name}=@: name the file after the @`);
  const text = readNamedFile(file, `--input ${name}`, workingDirectory);
  return text.replaceAll('\r\n', '\n').replace(/\n+$/, '');
}

/**
 * The scope from `--allow`, `--deny` and `--scope FILE` together; undefined when none is given, so that the
 * definition's own holds.
 * @throws SonarError `usage`
 */
export function parseScope(
  options: { allow?: string[] | undefined; deny?: string[] | undefined; scope?: string | undefined },
  workingDirectory: string,
): Scope | undefined {
  const allow = [...(options.allow ?? [])];
  const deny = [...(options.deny ?? [])];
  if (options.scope !== undefined) {
    const file = readScopeFile(options.scope, workingDirectory);
    allow.push(...file.allow);
    deny.push(...file.deny);
  } else if (options.allow === undefined && options.deny === undefined) return undefined;
  if (allow.length === 0)
    throw new SonarError(
      'usage',
      `${options.scope === undefined ? '--deny alone' : `--scope ${options.scope}`} allows nothing: a scan's scope takes the place of its definition's; name what may be scanned with --allow or in allow: of the file`,
    );
  return { allow, deny };
}

function readScopeFile(file: string, workingDirectory: string): Scope {
  const option = `--scope ${file}`;
  const document = parseDocument(readNamedFile(file, '--scope', workingDirectory), { version: '1.2' });
  const [fault] = document.errors;
  if (fault !== undefined) {
    const at = fault.linePos?.[0];
    throw new SonarError(
      'usage',
      `${file}:${at?.line ?? 1}:${at?.col ?? 1}: ${fault.message.split('\n')[0]}`,
    );
  }
  const content: unknown = document.toJS();
  const parsed = scopeSchema.safeParse(content);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const where = issue === undefined || issue.path.length === 0 ? '' : `${issue.path.join('.')}: `;
  throw new SonarError(
    'usage',
    `${option}: ${where}${issue?.message ?? 'not a scope'}; write it as\nallow: [example.com, 192.0.2.0/24]\ndeny: [admin.example.com]`,
  );
}
