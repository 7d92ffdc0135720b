// Problems of a definition as compilers print theirs, so that editors and terminals can jump to them.
import { safeText } from './safe-text.ts';

export interface TextProblem {
  path: string;
  line?: number | undefined;
  column?: number | undefined;
  message: string;
  hint?: string | null | undefined;
}

/** `file:line:column: message (hint)`; what has no place in a text is named by its path. */
export function problemLine(file: string | null, problem: TextProblem): string {
  const { path, line, column } = problem;
  const inText = line === undefined ? path : `${line}:${column ?? 1}`;
  const place = file === null ? inText : `${file}:${line === undefined ? ' ' : ''}${inText}`;
  const hint = problem.hint ? ` (${problem.hint})` : '';
  return safeText(`${place}: ${problem.message}${hint}`);
}

/** The problems in a fault's details, in the order of the text. */
export function problemsOf(details: Record<string, unknown>): TextProblem[] {
  const { problems } = details;
  return Array.isArray(problems) ? inOrder(problems as TextProblem[]) : [];
}

export function inOrder<Each extends TextProblem>(problems: readonly Each[]): Each[] {
  return problems.toSorted(
    (left, right) => (left.line ?? 0) - (right.line ?? 0) || (left.column ?? 0) - (right.column ?? 0),
  );
}
