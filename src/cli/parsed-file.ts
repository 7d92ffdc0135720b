// What a reader made of a file, as a person or a script is told.
import type { Row } from '#sonar/contracts/definition.ts';
import type { KeyedRecord } from '#sonar/domain/records.ts';
import { counted } from './figures.ts';
import { knownOf } from './inventory-table.ts';
import { safeJson, safeText } from './safe-text.ts';
import type { Session } from './session.ts';
import type { Column } from './table.ts';

export interface ParsedFile {
  file: string;
  reader: string;
  counts: { rows: number; records: number; bad: number; warnings: number };
  /** The first ones of each; the counts are of all. */
  records: KeyedRecord[];
  rows: Row[];
  bad: { reason: string; sample: string }[];
  warnings: string[];
}

const columns: readonly Column<KeyedRecord>[] = [
  { title: 'TYPE', cell: ({ type }) => type },
  { title: 'KEY', cell: ({ key }) => key, shrinkTo: 20 },
  { title: 'KNOWN', cell: ({ fields, sets }) => knownOf(fields, sets), shrinkTo: 20 },
];

/** Lines safe for a terminal. Rows are shown where they are asked for, or where nothing else came of them. */
export function parsedLines(session: Session, parsed: ParsedFile, showRows: boolean): string[] {
  const { counts, records, rows, bad, warnings } = parsed;
  const withRows = showRows || counts.records === 0;
  return [
    ...(records.length === 0 ? [] : session.table(columns, records)),
    ...(withRows ? rows.map((row) => safeText(safeJson(row, 0))) : []),
    ...left('records', records.length, counts.records),
    ...(withRows ? left('rows', rows.length, counts.rows) : []),
    ...bad.map(({ reason, sample }) => safeText(`bad: ${reason}: ${sample}`)),
    ...left('bad ones', bad.length, counts.bad),
    ...warnings.map((warning) => safeText(`warning: ${warning}`)),
    `${counted(counts.rows, 'row')}, ${counted(counts.records, 'record')}, ${counts.bad} bad, ${counted(counts.warnings, 'warning')}`,
  ];
}

const left = (what: string, shown: number, all: number): string[] =>
  all > shown ? [`… and ${all - shown} more ${what} (see --limit)`] : [];
