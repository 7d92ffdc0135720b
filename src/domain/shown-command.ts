// A rendered command for people: what the worker fills in stands as the author wrote it.
import { batchInput, fileInput, itemInput } from '#sonar/contracts/names.ts';
import type { RenderedArgument, RenderedCommand } from '#sonar/contracts/rendered-command.ts';

export interface ShownCommand {
  command: string[];
  stdin: string | null;
  env: Record<string, string>;
}

/** @param fileOf what stands for a path on the worker; its template unless given */
export const showCommand = (
  { command, stdin, env }: RenderedCommand,
  fileOf: (kind: 'in' | 'out', name: string) => string = templateOf,
): ShownCommand => {
  const text = (argument: RenderedArgument): string =>
    argument.map((part) => (part.kind === 'text' ? part.text : fileOf(part.kind, part.name))).join('');
  return {
    command: command.map(text),
    stdin: stdin === null ? null : text(stdin),
    env: Object.fromEntries(Object.entries(env).map(([name, value]) => [name, text(value)])),
  };
};

function templateOf(kind: 'in' | 'out', name: string): string {
  if (name === itemInput) return '${item}';
  if (name === batchInput) return '${batch}';
  const prefix = fileInput('');
  return name.startsWith(prefix) ? `\${file.${name.slice(prefix.length)}}` : `\${${kind}.${name}}`;
}
