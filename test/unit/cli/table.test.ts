import { displayWidth } from '#sonar/cli/safe-text.ts';
import { type Column, renderTable } from '#sonar/cli/table.ts';

interface Row {
  name: string | null;
  count: number;
}

const columns: Column<Row>[] = [
  { title: 'NAME', cell: (row) => row.name, shrinkTo: 5 },
  { title: 'COUNT', align: 'right', cell: (row) => row.count },
];
const wide = { width: Number.POSITIVE_INFINITY, colour: false };

test('columns are as wide as their widest cell, numbers on the right, nothing as a dash', () => {
  const rows = [
    { name: 'ports', count: 5 },
    { name: null, count: 12_345 },
  ];
  expect(renderTable(columns, rows, wide)).toEqual(['NAME   COUNT', 'ports      5', '-      12345']);
});

test('wide characters keep the columns aligned', () => {
  const lines = renderTable(
    columns,
    [
      { name: '世界', count: 1 },
      { name: 'abcd', count: 2 },
    ],
    wide,
  );
  expect(lines.map(displayWidth)).toEqual([11, 11, 11]);
});

test('a table wider than the terminal is cut where it may shrink', () => {
  const lines = renderTable(columns, [{ name: 'a-very-long-name', count: 7 }], { width: 14, colour: false });
  expect(lines).toEqual(['NAME     COUNT', 'a-very…      7']);
});

test('no line is wider than the terminal, however narrow', () => {
  for (let width = 1; width < 30; width++)
    for (const line of renderTable(columns, [{ name: '世'.repeat(30), count: 7 }], { width, colour: false }))
      expect(displayWidth(line)).toBeLessThanOrEqual(width);
});

test('a hostile cell stays one line of its own column', () => {
  const [, line] = renderTable(columns, [{ name: 'a\n\u001b[2J\u202eb', count: 1 }], wide);
  expect(line).toBe('a b       1');
});

test('a cell of a megabyte does not fill the log of a pipe', () => {
  const [, line] = renderTable(columns, [{ name: 'x'.repeat(1_000_000), count: 1 }], wide);
  expect(line?.length).toBeLessThan(300);
});

test('tones become colours only where there are colours', () => {
  const toned: Column<Row>[] = [{ title: 'S', cell: () => ({ text: 'ok', tone: 'good' }) }];
  expect(renderTable(toned, [{ name: '', count: 0 }], { width: 80, colour: true })[1]).toBe(
    '\u001b[32mok\u001b[39m',
  );
  expect(renderTable(toned, [{ name: '', count: 0 }], wide)[1]).toBe('ok');
});

test('a hundred thousand rows are no trouble', () => {
  const rows = Array.from({ length: 100_000 }, (_, count) => ({ name: `n${count}`, count }));
  expect(renderTable(columns, rows, wide)).toHaveLength(100_001);
});
