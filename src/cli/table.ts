import { displayWidth, pad, safeText, truncate } from './safe-text.ts';
import { paint, type Tone } from './tone.ts';

export interface Column<Row> {
  title: string;
  /** The cell's text, or with a tone; it is made safe here. */
  cell: (row: Row) => string | number | null | { text: string; tone: Tone };
  align?: 'left' | 'right';
  /** May be cut when the table is wider than the terminal, down to this many columns. */
  shrinkTo?: number;
}

export interface TableSpace {
  /** Columns of the terminal; Infinity where there is none. */
  width: number;
  colour: boolean;
}

const gap = '  ';
/** Without a terminal nothing has to be cut, but no value may fill a screen of somebody's log. */
const widestCell = 256;

/** Lines of an aligned table under its titles. Every cell is one safe line, cut to its column. */
export function renderTable<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  space: TableSpace,
): string[] {
  const cells = rows.map((row) => columns.map((column) => cellOf(column, row)));
  const wanted = columns.map((column, index) =>
    cells.reduce(
      (widest, line) => Math.max(widest, displayWidth((line[index] as Cell).text)),
      column.title.length,
    ),
  );
  const widths = fit(columns, wanted, space.width);
  const lineOf = (line: readonly Cell[]): string =>
    trimmed(
      line.map((cell, index) => ({
        text: pad(cell.text, widths[index] as number, columns[index]?.align ?? 'left'),
        tone: cell.tone,
      })),
      space,
    );
  const titles = columns.map((column): Cell => ({ text: column.title, tone: 'faint' }));
  return [titles, ...cells].map(lineOf);
}

interface Cell {
  text: string;
  tone: Tone;
}

function cellOf<Row>(column: Column<Row>, row: Row): Cell {
  const value = column.cell(row);
  if (value === null || value === '') return { text: '-', tone: 'faint' };
  if (typeof value === 'object')
    return { text: truncate(safeText(value.text), widestCell), tone: value.tone };
  return { text: truncate(safeText(String(value)), widestCell), tone: 'plain' };
}

/** Takes columns away from the widest of those that may shrink, until all fit or none can give more. */
function fit<Row>(columns: readonly Column<Row>[], wanted: readonly number[], width: number): number[] {
  const widths = [...wanted];
  let excess = widths.reduce((sum, each) => sum + each, 0) + gap.length * (columns.length - 1) - width;
  while (excess > 0) {
    let widest = -1;
    for (const [index, column] of columns.entries()) {
      const spare = column.shrinkTo !== undefined && (widths[index] as number) > column.shrinkTo;
      if (spare && (widest < 0 || (widths[index] as number) > (widths[widest] as number))) widest = index;
    }
    if (widest < 0) break;
    widths[widest] = (widths[widest] as number) - 1;
    excess--;
  }
  return widths;
}

/** Joins the cells of a line; no blanks at its end, and no more columns than there are. */
function trimmed(cells: Cell[], space: TableSpace): string {
  let line = '';
  let used = 0;
  for (const [index, cell] of cells.entries()) {
    const last = index === cells.length - 1;
    const room = space.width - used;
    const text = truncate((index === 0 ? '' : gap) + (last ? cell.text.trimEnd() : cell.text), room);
    line += paint(text, cell.tone, space.colour);
    used += displayWidth(text);
    if (used >= space.width) break;
  }
  return line.trimEnd();
}
