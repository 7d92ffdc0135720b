import { safeText } from './safe-text.ts';

/** Bytes of a command or a target as lines that do nothing to a terminal; tabs and line ends become what they look like. */
export function safeLines(bytes: Uint8Array): string[] {
  const text = new TextDecoder().decode(bytes);
  const lines = text.split(/\r?\n/);
  if (lines.at(-1) === '') lines.pop();
  return lines.map(safeText);
}
