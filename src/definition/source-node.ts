// The YAML text as a tree that keeps what the author wrote: every scalar's own text (`80,443`, `08`, `1.10`
// stay as they are) and where it stands.

interface Placed {
  /** Offset in the source, in UTF-16 units. */
  at: number;
}
export interface ScalarNode extends Placed {
  kind: 'scalar';
  text: string;
  /** Nothing, `~` or `null`, unquoted. */
  isNull: boolean;
  /** Offset of the text's first character where the source holds the text as it is; else null. */
  textAt: number | null;
}
export interface ListNode extends Placed {
  kind: 'list';
  items: SourceNode[];
}
export interface MapEntry {
  key: string;
  keyAt: number;
  value: SourceNode;
}
export interface MapNode extends Placed {
  kind: 'map';
  entries: MapEntry[];
}
export type SourceNode = ScalarNode | ListNode | MapNode;

/** A node and its name from the root: `steps.ports.command[2]`. */
export interface Place<Node extends SourceNode = SourceNode> {
  node: Node;
  path: string;
}

export const below = (path: string, key: string): string => (path === '' ? key : `${path}.${key}`);

const kindNames = { scalar: 'a text', list: 'a list', map: 'a mapping' } as const;
export const kindName = (node: SourceNode): string =>
  node.kind === 'scalar' && node.isNull ? 'empty' : kindNames[node.kind];
