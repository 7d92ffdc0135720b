// A compiled definition: what `definition/` makes of the YAML text, what PostgreSQL keeps as jsonb
// beside the text, and what planning, placement and finalization read. Types only.
import type { RecordDeclaration } from './record-declaration.ts';

export const inputTypes = [
  'text',
  'number',
  'flag',
  'lines',
  'domains',
  'hosts',
  'cidrs',
  'urls',
  'file',
] as const;
export type InputType = (typeof inputTypes)[number];
/** Input types whose value is a list of lines, one item each. */
export const listInputTypes: readonly InputType[] = ['lines', 'domains', 'hosts', 'cidrs', 'urls'];

export interface InputSpec {
  type: InputType;
  required: boolean;
  /** Source text of the scalar; lines are joined by newlines. */
  default: string | null;
  help: string | null;
}

/** Domains (each covers its subdomains), addresses and CIDRs. Deny wins. */
export interface Scope {
  allow: string[];
  deny: string[];
}

/** `inputs.domains`, or an output of an upstream step. */
export type Source = { kind: 'input'; input: string } | { kind: 'output'; step: string; output: string };

/** How values are put into one file: a text a line, a JSON value a line; or files into one folder. */
export const listForms = ['lines', 'jsonl', 'directory'] as const;
export type ListForm = (typeof listForms)[number];

export interface ForeachSpec {
  in: Source;
  /** A field of the row: the item is that value, rows without it are passed over. Null: the whole row. */
  pick: string | null;
  /** Each value once within the scan: a second task is never made of it. */
  unique: boolean;
  /** All rows with one value of this field are one item: the field, and of every other its distinct values. */
  group: string | null;
  /** So many items a task, in their order, in the file (or folder) `${batch}`. */
  batch: { size: number; as: ListForm } | null;
  /** Networks larger than this prefix are split into networks of it; everything else stays as it is. */
  split: number | null;
  /** The output's files are the items, rather than its rows. */
  files: boolean;
}

export const stepInputForms = ['file', ...listForms] as const;
export type StepInputForm = (typeof stepInputForms)[number];

export interface StepInputSpec {
  name: string;
  from: Source;
  /**
   * `file`: the one file of a `single` need as it is; of an `all` need the files one after another. `directory`:
   * the files; of an `all` need in one folder a task. `lines`, `jsonl`: one file made of the rows.
   */
  as: StepInputForm;
  pick: string | null;
  /** Each line once in the file. */
  unique: boolean;
}

/** A file or a folder that belongs to the definition; what is in it was uploaded when it was applied. */
export interface FileSpec {
  /** As written: relative to the definition's own file. */
  path: string;
  kind: 'file' | 'directory';
  /** Of its content with all paths; workers keep what they have fetched by it. Empty until it is applied. */
  digest: string;
}

/** How an output's bytes become rows, and rows records. */
export interface ReadSpec {
  /** A reader's name or format: `jsonl`, `lines`, `nmap-xml`. */
  reader: string;
  /** The record type that each row makes, for readers without records of their own. */
  record: string | null;
  /** Record field → row field (a dotted path). */
  fields: Record<string, string>;
}

export interface OutputSpec {
  name: string;
  /** Relative path of a file below the attempt's output folder; null: the command's stdout. */
  path: string | null;
  read: ReadSpec | null;
  optional: boolean;
}

/** A piece of one argument. References are resolved at placement, except files and `out`: worker paths. */
export type TemplatePart =
  | { kind: 'text'; text: string }
  | { kind: 'item'; path: string[]; join: string | null }
  | { kind: 'inputs'; name: string; join: string | null }
  | { kind: 'batch' }
  | { kind: 'file'; name: string }
  | { kind: 'in'; name: string }
  | { kind: 'out'; name: string };
export type Template = TemplatePart[];

export interface RetrySpec {
  /** Attempts after the first. */
  max: number;
  backoffMs: number;
  maxBackoffMs: number;
}

export interface Step {
  name: string;
  /** OR-set: a worker with any of them will do. */
  tags: string[];
  needs: { step: string; mode: 'single' | 'all' }[];
  foreach: ForeachSpec | null;
  inputs: StepInputSpec[];
  /** What is checked against the scope, item by item. */
  target: Template | null;
  command: Template[];
  stdin: Template | null;
  env: Record<string, Template>;
  /** Environment variable → name of the secret whose value it gets on the worker. */
  secrets: Record<string, string>;
  outputs: OutputSpec[];
  /** Exit codes that count as success. */
  okExit: number[];
  maxConcurrent: number | null;
  timeoutMs: number;
  retry: RetrySpec;
  image: string | null;
  location: string | null;
  /** Items that would become an argument starting with `-` are refused unless this is set. */
  allowOptionItems: boolean;
}

/** What a step's first task fixes for its scan; later changes of these parts are for new scans. */
export interface StepPins {
  needs: Step['needs'];
  foreach: ForeachSpec | null;
  inputs: StepInputSpec[];
  /** Names of the outputs. */
  outputs: string[];
  /** Files are checked against the scope when they are made, by the target of then. */
  target: Template | null;
  /** How the rows of its sources were read then: for files whose own revision named no reader. */
  reads: { step: string; output: string; read: ReadSpec | null }[];
}

export interface Definition {
  name: string;
  inputs: Record<string, InputSpec>;
  files: Record<string, FileSpec>;
  scope: Scope | null;
  /** Record types beside Sonar's own. Absent: none. */
  records?: Record<string, RecordDeclaration>;
  /** In an order in which every step comes after all it needs. */
  steps: Step[];
}

/** A fault of a definition's text, with the way out. Lines and columns count from 1. */
export interface DefinitionProblem {
  path: string;
  line: number;
  column: number;
  message: string;
  hint: string | null;
}

/** A JSON value as rows, items and record fields carry it. */
export type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue };
/** One row of a reader; of `lines` the row is `{line}`. */
export type Row = { [field: string]: JsonValue };
