// Types that definitions declare: their records are kept like Sonar's own, and one name has one meaning in a workspace.
import { defaultWorkspace } from '#sonar/contracts/ids.ts';
import { applyDefinition } from '#sonar/flow/apply-definition.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { openLaboratory } from '../fixtures/laboratory.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();

const text = (name: string, records: string): string => `sonar: 1
name: ${name}
records:
  ${records}
steps:
  only:
    tags: [t]
    command: [tool]
    outputs: {found: {path: f.jsonl, read: {format: jsonl, record: login, fields: {host: h, form: f, title: t}}}}`;
const declared = 'login: {key: [host, form], normalize: {host: host}}';

test('records of a declared type are keyed by its key, and those without are bad', async () => {
  const lab = openLaboratory(clone, objects);
  const scan = await lab.scan(text('a', declared));
  const worker = await lab.worker();
  await lab.plan(scan);
  await lab.place();
  const [attempt] = await lab.published(scan);
  const rows = [
    { h: 'WWW.example.com.', f: '/in', t: 'one' },
    { h: 'www.example.com', f: '/in', t: 'two' },
    { h: 'www.example.com', t: 'no form' },
  ];
  await lab.run(attempt!, worker, {
    found: { 'f.jsonl': rows.map((row) => JSON.stringify(row)).join('\n') },
  });
  await lab.finalize();
  expect(
    await clone.database.rows(
      query`select type, key, state->'fields'->'title'->>'value' as title from sonar.inventory`,
    ),
  ).toEqual([{ type: 'login', key: 'www.example.com /in', title: 'two' }]);
  expect(
    await clone.database.rows(query`select records, bad_records, warnings from sonar.finalization`),
  ).toEqual([
    { records: 2, bad_records: 1, warnings: ['f.jsonl: login: `form` is no text, number or flag: null'] },
  ]);
});

test('the same declaration again is accepted, another one is refused with its place and leaves nothing', async () => {
  const apply = (name: string, records: string) =>
    applyDefinition(clone.database, defaultWorkspace, text(name, records));
  await apply('a', declared);
  await apply('b', 'login: {normalize: {host: host}, key: [host, form]}');
  await expect(apply('c', 'login: {key: [form, host]}')).rejects.toMatchObject({
    code: 'invalid',
    details: {
      problems: [
        {
          path: 'records.login',
          line: 4,
          column: 3,
          message: 'the definition `a` declares `login` in another way: key: [host, form], host as host',
          hint: 'declare it in the same way, or give yours another name',
        },
      ],
    },
  });
  expect(
    await clone.database.rows(query`select name from sonar.definition where latest_revision > 0 order by 1`),
  ).toEqual([{ name: 'a' }, { name: 'b' }]);
});

test('of two that are applied at once, one is refused', async () => {
  const outcomes = await Promise.allSettled(
    ['key: [host, form]', 'key: [form, host]'].map((key, index) =>
      applyDefinition(clone.open(1), defaultWorkspace, text(`d${index}`, `login: {${key}}`)),
    ),
  );
  expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
});
