// YAML text to a source tree. Everything that makes YAML surprising or dangerous ends here: tags, merge keys,
// several documents, duplicate keys, alias bombs, depth and size.
import {
  type Alias,
  isAlias,
  isMap,
  isPair,
  isScalar,
  isSeq,
  Lexer,
  type Node,
  parseDocument,
  type Scalar,
  type YAMLError,
} from 'yaml';
import type { ProblemList } from './problem-list.ts';
import { below, type MapEntry, type ScalarNode, type SourceNode } from './source-node.ts';

/** UTF-8 bytes of a definition. */
export const maxSourceBytes = 1024 * 1024;
/** Tokens of the text, and nodes after aliases are followed: the parser's time grows with them. */
const maxTokens = 100_000;
const maxNodes = 100_000;
const maxDepth = 64;

/** The root of the text, or null with the reason among the problems. */
export function readYaml(source: string, problems: ProblemList): SourceNode | null {
  const refusal = sizeRefusal(source);
  if (refusal !== null) {
    problems.add('', refusal.at, refusal.message);
    return null;
  }
  const document = parseDocument(source, { uniqueKeys: false, prettyErrors: false, logLevel: 'error' });
  for (const error of document.errors) {
    problems.add('', error.pos[0], messageOf(error), hintOf(error, source));
  }
  if (!problems.isEmpty) return null;
  if (document.contents === null) {
    problems.add('', 0, 'the definition is empty', 'begin with `sonar: 1`');
    return null;
  }
  return new TreeBuilder(source, problems).build(document.contents, '', 0);
}

/** Refuses before the parser runs what would make it slow or overflow its stack. */
function sizeRefusal(source: string): { at: number; message: string } | null {
  if (Buffer.byteLength(source) > maxSourceBytes) {
    return { at: 0, message: `the definition is larger than ${maxSourceBytes} bytes` };
  }
  let at = 0;
  let tokens = 0;
  let open = 0;
  let markersInLine = 0;
  for (const token of new Lexer().lex(source)) {
    tokens += 1;
    if (token === '[' || token === '{') open += 1;
    else if (token === ']' || token === '}') open -= 1;
    else if (token === '-' || token === '?') markersInLine += 1;
    else if (token.includes('\n')) markersInLine = 0;
    if (open > maxDepth || markersInLine > maxDepth)
      return { at, message: 'the definition is nested too deeply' };
    if (tokens > maxTokens) return { at, message: 'the definition has too many parts' };
    if (token.length > 1 || token >= ' ' || token === '\n') at += token.length;
  }
  return null;
}

const ownMessages: Partial<Record<YAMLError['code'], string>> = {
  MULTIPLE_DOCS: 'a definition is one YAML document; a second one begins here',
  TAB_AS_INDENT: 'a tab is used as indentation',
};

const messageOf = (error: YAMLError): string => ownMessages[error.code] ?? `YAML: ${error.message}`;

function hintOf(error: YAMLError, source: string): string | null {
  const [at] = error.pos;
  if (error.code === 'TAB_AS_INDENT') return 'indent with spaces';
  if (source[at] === '{' && source[at - 1] === '$') {
    return 'inside [ ] quote an argument that holds a template: "${item}"';
  }
  if (error.code === 'BAD_SCALAR_START' || error.code === 'BAD_ALIAS') return 'put the text in quotes';
  return null;
}

class TreeBuilder {
  readonly #source: string;
  readonly #problems: ProblemList;
  /** Collections that are being built: an alias to one of them would never end. */
  readonly #open = new Set<Node>();
  readonly #anchors = new Map<string, Node>();
  /** Aliases that are being followed. */
  #following = 0;
  #nodes = 0;
  #exhausted = false;

  constructor(source: string, problems: ProblemList) {
    this.#source = source;
    this.#problems = problems;
  }

  /** @param at where the parent stands, for nodes that have no text of their own */
  build(node: unknown, path: string, at: number): SourceNode | null {
    if (isPair(node)) return this.#refuse(path, at, 'a mapping cannot stand here');
    const here = startOf(node) ?? at;
    this.#nodes += 1;
    if (this.#nodes > maxNodes) {
      if (!this.#exhausted) this.#problems.add(path, here, 'the definition grows too large by its aliases');
      this.#exhausted = true;
      return null;
    }
    if (isAlias(node)) return this.#followed(node, path, here);
    this.#remember(node);
    if (isScalar(node)) return this.#scalar(node, path, here);
    if (isMap(node) || isSeq(node)) return this.#collection(node, path, here);
    return { kind: 'scalar', text: '', isNull: true, at: here, textAt: null };
  }

  /** The document's own look-up searches all of it for each alias: quadratic in a text of aliases. */
  #followed(alias: Alias, path: string, at: number): SourceNode | null {
    const target = this.#anchors.get(alias.source);
    if (target === undefined) {
      const hint = 'quote a text that begins with `*`';
      return this.#refuse(path, at, `\`*${alias.source}\` names no anchor`, hint);
    }
    this.#following += 1;
    const built = this.build(target, path, at);
    this.#following -= 1;
    return built;
  }

  /** An anchor means its last node before the alias; nodes seen again through an alias are not new. */
  #remember(node: unknown): void {
    if (
      this.#following === 0 &&
      (isScalar(node) || isMap(node) || isSeq(node)) &&
      node.anchor !== undefined
    ) {
      this.#anchors.set(node.anchor, node);
    }
  }

  #refuse(path: string, at: number, message: string, hint: string | null = null): null {
    this.#problems.add(path, at, message, hint);
    return null;
  }

  #scalar(node: Scalar, path: string, at: number): SourceNode | null {
    if (node.tag !== undefined)
      return this.#refuse(path, at, `the tag \`${node.tag}\` is not read`, 'leave it out');
    const text = node.source ?? '';
    const quote = node.type === 'QUOTE_DOUBLE' || node.type === 'QUOTE_SINGLE' ? 1 : 0;
    const verbatim = this.#source.startsWith(text, at + quote) && text !== '';
    return {
      kind: 'scalar',
      text,
      isNull: node.value === null,
      at,
      textAt: verbatim ? at + quote : null,
    } satisfies ScalarNode;
  }

  #collection(node: Node, path: string, at: number): SourceNode | null {
    if (node.tag !== undefined)
      return this.#refuse(path, at, `the tag \`${node.tag}\` is not read`, 'leave it out');
    if (this.#open.has(node)) return this.#refuse(path, at, 'an alias stands inside its own anchor');
    if (this.#open.size >= maxDepth) return this.#refuse(path, at, 'the definition is nested too deeply');
    this.#open.add(node);
    const built = isSeq(node) ? this.#list(node.items, path, at) : this.#map(node, path, at);
    this.#open.delete(node);
    return built;
  }

  #list(items: readonly unknown[], path: string, at: number): SourceNode {
    const built = items.map((item, index) => this.build(item, `${path}[${index}]`, at));
    return { kind: 'list', items: built.filter((item) => item !== null), at };
  }

  #map(node: Node, path: string, at: number): SourceNode | null {
    if (!isMap(node)) return null;
    const entries: MapEntry[] = [];
    const seen = new Map<string, number>();
    for (const pair of node.items) {
      const keyAt = startOf(pair.key) ?? at;
      const key = isAlias(pair.key) ? this.#anchors.get(pair.key.source) : pair.key;
      this.#remember(pair.key);
      if (!isScalar(key)) {
        this.#problems.add(path, keyAt, 'a key must be a text');
        continue;
      }
      const name = key.source ?? '';
      if (name === '<<') {
        this.#problems.add(path, keyAt, 'merge keys (`<<`) are not read', 'write the fields out');
        continue;
      }
      if (seen.has(name)) {
        this.#problems.add(below(path, name), keyAt, `\`${name}\` stands here twice`, 'keep one of them');
        continue;
      }
      seen.set(name, keyAt);
      const value = this.build(pair.value, below(path, name), keyAt);
      if (value !== null) entries.push({ key: name, keyAt, value });
    }
    return { kind: 'map', entries, at };
  }
}

function startOf(node: unknown): number | null {
  return typeof node === 'object' && node !== null && 'range' in node && Array.isArray(node.range)
    ? (node.range[0] as number)
    : null;
}
