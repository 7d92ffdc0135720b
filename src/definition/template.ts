// Templates: `${item.ip}:${item.port}` in one argument. `$${` is a literal `${`; everything else is text.
import type { TemplatePart } from '#sonar/contracts/definition.ts';

/** A part and the offset of its first character in the template's text. */
export interface PlacedPart {
  part: TemplatePart;
  index: number;
}
export interface TemplateFault {
  index: number;
  message: string;
  hint: string | null;
}

/** The parts of one template and all faults of it; neighbouring texts are one part. */
export function parseTemplate(text: string): { parts: PlacedPart[]; faults: TemplateFault[] } {
  const parts: PlacedPart[] = [];
  const faults: TemplateFault[] = [];
  const appendText = (piece: string, index: number): void => {
    const last = parts.at(-1)?.part;
    if (last?.kind === 'text') last.text += piece;
    else if (piece !== '') parts.push({ part: { kind: 'text', text: piece }, index });
  };
  let at = 0;
  while (at < text.length) {
    if (text.startsWith('$${', at)) {
      appendText('${', at);
      at += 3;
    } else if (text.startsWith('${', at)) {
      const end = endOfReference(text, at + 2);
      if (end === -1) {
        faults.push({
          index: at,
          message: '`${` is never closed',
          hint: 'close it with `}`, or write `$${` for a literal `${`',
        });
        return { parts, faults };
      }
      const reference = parseReference(text.slice(at + 2, end).trim());
      if ('message' in reference) faults.push({ index: at, ...reference });
      else parts.push({ part: reference, index: at });
      at = end + 1;
    } else {
      const next = text.indexOf('$', at + 1);
      const end = next === -1 ? text.length : next;
      appendText(text.slice(at, end), at);
      at = end;
    }
  }
  return { parts, faults };
}

/** The closing brace, not one inside the quotes of a separator. */
function endOfReference(text: string, from: number): number {
  let quote: string | null = null;
  for (let at = from; at < text.length; at += 1) {
    const character = text[at];
    if (quote !== null) {
      if (character === quote) quote = null;
    } else if (character === '"' || character === "'") quote = character;
    else if (character === '}') return at;
  }
  return -1;
}

/** Separator of `join` where none is written. */
const defaultSeparator = ',';
const variables = 'write item, item.FIELD, batch, inputs.NAME, in.NAME, out.NAME, file.NAME or join(…)';
const segment = /^[A-Za-z0-9_-]+$/;

function parseReference(text: string): TemplatePart | { message: string; hint: string | null } {
  const call = /^join\(\s*([^\s,()]+)\s*(?:,\s*("[^"]*"|'[^']*')\s*)?\)$/.exec(text);
  if (call !== null) {
    const [, inner = '', separator] = call;
    const reference = parseVariable(inner);
    if ('message' in reference) return reference;
    if (reference.kind === 'item' || reference.kind === 'inputs') {
      return { ...reference, join: separator === undefined ? defaultSeparator : separator.slice(1, -1) };
    }
    return { message: `\`${text}\`: join takes an item or an input`, hint: variables };
  }
  if (text.includes('('))
    return {
      message: `\`${text}\` is no call that is known`,
      hint: 'write `join(item.port)` or `join(item.port, ";")`',
    };
  return parseVariable(text);
}

function parseVariable(text: string): TemplatePart | { message: string; hint: string | null } {
  const [root = '', ...path] = text.split('.');
  if (root === 'secret' || root === 'secrets') {
    return {
      message: `\`\${${text}}\`: a secret never becomes an argument`,
      hint: 'write `secrets: [NAME]`: the command finds it in its environment',
    };
  }
  const wellFormed = path.every((part) => segment.test(part));
  const [name] = path;
  if (root === 'item' && wellFormed) return { kind: 'item', path, join: null };
  if (root === 'inputs' && wellFormed && path.length === 1 && name !== undefined) {
    return { kind: 'inputs', name, join: null };
  }
  if (text === 'batch') return { kind: 'batch' };
  if (
    (root === 'in' || root === 'out' || root === 'file') &&
    wellFormed &&
    path.length === 1 &&
    name !== undefined
  ) {
    return { kind: root, name };
  }
  return { message: `unknown variable \`\${${text}}\``, hint: variables };
}
