// Lines that were written to be dear: brackets, blanks and colons by the ten thousand, which a pattern would look at
// again from each of them.
import { readerNames } from '#sonar/readers/registry.ts';
import { workOf } from './counted-work.ts';
import { eventsOf, only } from './events-of.ts';

const length = 60 * 1024;
/** CSV has no pattern of the kind, and its own test: csv.test.ts. */
const readers = readerNames.filter((name) => name !== 'csv');
const dear: [string, string][] = [
  ['brackets that close', `[\n${']'.repeat(length)}x\n{"a":1}]`],
  ['lines of brackets that open', `${'[\n'.repeat(length / 2)}x\n`],
  ['lines of brackets and blanks', `${'[ \n'.repeat(length / 3)}x\n`],
  ['commas and blanks', `[{"a":1}\n${', '.repeat(length / 2)}x\n]`],
  ['blanks before a bracket', `192.0.2.1:80${' '.repeat(length)}x]\n`],
  ['blanks and brackets', `192.0.2.1:80${' ['.repeat(length / 2)}x\n`],
  [
    'colons and digits',
    `{"url":"http://a.test/","tech":["a${':1'.repeat(length / 2)} x"],"host":"a.test"}\n`,
  ],
];

test.each(readers.flatMap((reader) => dear.map(([name, text]) => [reader, name, text] as const)))(
  '%s looks at %s a bounded number of times',
  async (reader, _, text) => {
    const work = await workOf(() => eventsOf(text, { reader }), 100 * length);
    expect(work).toBeLessThan(100 * length);
  },
);

test('a note of a plain line goes, wherever its brackets stand', async () => {
  const lines = [
    'a.test:80 [x]',
    'b.test:81  [x y]',
    'c.test:82',
    'd.test:83 [] [x]',
    'e.test:84[x]',
    'f.test:85 [[x]',
  ];
  const events = await eventsOf(lines.join('\n'), { reader: 'naabu' });
  expect(only(events, 'row').map(({ row }) => row.host_port)).toEqual([
    'a.test:80',
    'b.test:81',
    'c.test:82',
    'f.test:85',
  ]);
});

test('a technology is a name and a version, where it has one', async () => {
  const tech = ['nginx:1.18.0', 'a:b:2.0', 'PHP', 'x:y', ':1', 'a:1 b', 'a b:1:2'];
  const line = { url: 'http://a.test/', host: 'a.test', tech };
  const events = await eventsOf(`${JSON.stringify(line)}\n`, { reader: 'httpx' });
  const drafts = only(events, 'row').flatMap(({ records }) =>
    records.filter(({ type }) => type === 'technology'),
  );
  expect(drafts.map(({ fields }) => [fields.name, fields.version])).toEqual([
    ['nginx', '1.18.0'],
    ['a:b', '2.0'],
    ['PHP', null],
    ['x:y', null],
    [':1', null],
    ['a:1 b', null],
    ['a b', '1:2'],
  ]);
});
