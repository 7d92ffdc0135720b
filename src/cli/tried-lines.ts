// What came of a trial, for a person.
import type { JsonValue } from '#sonar/contracts/definition.ts';
import { formatDuration } from './figures.ts';
import { itemText } from './item-text.ts';
import { type ParsedFile, parsedLines } from './parsed-file.ts';
import { safeText } from './safe-text.ts';
import type { Session } from './session.ts';

interface Tried {
  step: string;
  item: JsonValue | null;
  outcome: string;
  failure: { code: string; message: string } | null;
  argv: string[];
  exitCode: number | null;
  signal: string | null;
  durationMs: number;
  stdout: string;
  stderr: string;
  refused: string[];
  files: (Omit<ParsedFile, 'file' | 'reader'> & {
    output: string;
    path: string;
    size: number;
    reader: string | null;
    poisoned: boolean;
  })[];
}

// The end says more than the beginning; all of it is in the JSON.
const shownLines = 20;

export function triedLines(session: Session, tried: Tried): string[] {
  const item = tried.item === null ? '' : ` on ${itemText(tried.item)}`;
  return [
    safeText(`${tried.step}${item}`),
    ...(tried.argv.length === 0 ? [] : [safeText(`  ${JSON.stringify(tried.argv)}`)]),
    ...tried.refused.map((reason) => safeText(`  refused: ${reason}`)),
    ...stream('stdout', tried.stdout),
    ...stream('stderr', tried.stderr),
    safeText(`${outcomeText(tried)}${tried.failure === null ? '' : `: ${tried.failure.message}`}`),
    ...tried.files.flatMap((file) => ['', ...fileLines(session, file)]),
  ];
}

function outcomeText({ outcome, exitCode, signal, durationMs }: Tried): string {
  if (outcome === 'no_work') return 'nothing to do: no line of its target is within the scope';
  const how = exitCode === null ? (signal ?? '') : `exit ${exitCode}`;
  return `${outcome.replaceAll('_', ' ')}${how === '' ? '' : `, ${how}, after ${formatDuration(durationMs)}`}`;
}

function stream(name: string, text: string): string[] {
  const lines = text.replace(/\n$/, '').split('\n');
  if (text === '') return [];
  const hidden = lines.length - shownLines;
  return [
    `  ${name}:`,
    ...(hidden > 0 ? [`    … ${hidden} lines before`] : []),
    ...lines.slice(-shownLines).map((line) => safeText(`    ${line}`)),
  ];
}

function fileLines(session: Session, file: Tried['files'][number]): string[] {
  const name = `${file.output}: ${file.path}, ${file.size} bytes`;
  if (file.reader === null) return [safeText(`${name}; nothing reads it`)];
  return [
    safeText(`${name}, read as ${file.reader}${file.poisoned ? ': nothing of it could be read' : ''}`),
    ...parsedLines(session, { ...file, file: file.path, reader: file.reader }, true),
  ];
}
