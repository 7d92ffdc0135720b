import type { ScanDetail } from '#sonar/contracts/scan-api.ts';
import type { Random } from '../random.ts';
import type { Expectation } from './expectation.ts';

/** One kind of scan with known right answers. */
export interface Shape {
  /** Also the name of its definition. */
  name: string;
  /** The text of the definition's steps, indented by two. */
  steps: string;
  /** Each scan has a definition of its own, named like the scan, which its operator may revise. */
  ownDefinition?: true;
  /** Files that are uploaded with the definition: name and content. */
  files?: Readonly<Record<string, string>>;
  /** Declarations of inputs besides `scan`, which every definition has. */
  inputs: Record<string, string>;
  plan(scan: string, random: Random): ScanPlan;
}

export interface ScanPlan {
  inputs: Record<string, string | string[]>;
  expects: Expectation;
  /** What its operator does between start and end; resolves when the scan may be waited for. */
  operate?(operator: Operating, scanId: string, scan: string): Promise<void>;
  /** Text that may stand in no file of the whole run, neither in a log nor in the data of a service. */
  hidden?: string;
}

/** What an operator can do to a scan; each comes to its end, whatever breaks meanwhile. */
export interface Operating {
  /** The folder whose files tell commands what to do. */
  readonly marks: string;
  /** Looks until the scan is as wanted, or has ended. */
  until(scanId: string, wanted: (detail: ScanDetail) => boolean): Promise<ScanDetail>;
  ended(scanId: string): Promise<ScanDetail>;
  /** A scan that has ended meanwhile cannot be held. */
  hold(scanId: string, ms: number): Promise<void>;
  cancel(scanId: string): Promise<void>;
  retry(scanId: string): Promise<void>;
  /** Reads every poisoned result of an ended scan again. */
  repair(scanId: string): Promise<void>;
  /** Makes a revision, with its files. @returns its number; the same text again is the same revision. */
  define(shape: Shape, name: string, steps?: string): Promise<number>;
  setSecret(name: string, value: string): Promise<void>;
}

/** Stands in steps for the name of the definition. */
export const ownName = 'OWN_NAME';

/** The argument list of a step. */
export const act = (verb: string, step: string, item: string, seconds: string, file?: string): string =>
  `[ACT, ${verb}, ${step}, "${item}", "${seconds}"${file === undefined ? '' : `, "${file}"`}]`;

/** Rows that make endpoint records and can be fanned out over. */
export const says =
  'outputs: {rows: {stdout: true, read: {format: jsonl, record: endpoint, fields: {url: url}}}}';

export const numbered = (count: number, name = 'ok'): string[] =>
  Array.from({ length: count }, (_, index) => `${name}-${index}`);
