// Paths come from other machines and from commands: none of them may lead out of the attempt's folder.
import { join } from 'node:path';
import type { Dispatch } from '#sonar/contracts/dispatch-message.ts';
import type { RenderedArgument } from '#sonar/contracts/rendered-command.ts';

/** The contract's bound for a path in a manifest. */
const maxPathBytes = 1024;
const maxSegmentBytes = 255;

/** Why a relative path is refused; null when it stays below the folder it is relative to. */
export function pathProblem(path: string): string | null {
  if (path === '') return 'is empty';
  if (Buffer.byteLength(path) > maxPathBytes) return `is longer than ${maxPathBytes} bytes`;
  if (path.includes('\0')) return 'has a NUL character';
  if (path.includes('\uFFFD')) return 'is not valid UTF-8';
  if (path.startsWith('/')) return 'is absolute';
  for (const segment of path.split('/')) {
    if (segment === '' || segment === '.' || segment === '..') return `has the segment "${segment}"`;
    if (Buffer.byteLength(segment) > maxSegmentBytes)
      return `has a segment of more than ${maxSegmentBytes} bytes`;
  }
  return null;
}

export interface AttemptFolders {
  root: string;
  in: string;
  out: string;
  tmp: string;
}

export function attemptFolders(work: string, attemptId: string): AttemptFolders {
  const root = join(work, attemptId);
  return { root, in: join(root, 'in'), out: join(root, 'out'), tmp: join(root, 'tmp') };
}

/** Where each input lies: the file of a `file` input, the folder of a `directory` input. */
export type InputPaths = ReadonlyMap<string, string>;

/**
 * An argument's text, with `in` and `out` as absolute local paths.
 * @returns a problem for people when a part names what is not there.
 */
export function resolveArgument(
  argument: RenderedArgument,
  outputs: Dispatch['outputs'],
  folders: AttemptFolders,
  inputs: InputPaths,
): { text: string } | { problem: string } {
  let text = '';
  for (const part of argument) {
    if (part.kind === 'text') {
      text += part.text;
      continue;
    }
    if (part.kind === 'in') {
      const path = inputs.get(part.name);
      if (path === undefined) return { problem: `\${in.${part.name}} names no input of the step` };
      text += path;
      continue;
    }
    const output = outputs.find(({ name }) => name === part.name);
    if (output?.path == null)
      return { problem: `\${out.${part.name}} names no output of the step that has a path` };
    text += join(folders.out, output.path);
  }
  if (text.includes('\0')) return { problem: 'an argument has a NUL character' };
  return { text };
}
