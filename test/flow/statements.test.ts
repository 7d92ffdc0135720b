// Every named statement fits the migrated schema, and its columns are those that its rows are declared with.
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { type Describer, openDescriber } from '../fixtures/described-statement.ts';
import { sourceStatements, statementsOf } from '../fixtures/statement-texts.ts';

let describer: Describer;
// Before the clone's own hooks, which run in the order of their calls.
afterAll(() => describer.close());
const clone = useClonedDatabase();
beforeAll(async () => {
  describer = await openDescriber(clone.url);
});
const statements = sourceStatements();

/** PostgreSQL's type → what the TypeScript type of such a column looks like. Brands and unions of texts are texts. */
const looksLike: Record<string, RegExp> = {
  text: /^(string|[A-Z]\w*|(?:'\w+'\|?)+)(\|null)?$/,
  uuid: /^(string|[A-Z]\w*Id)(\|null)?$/,
  bool: /^boolean(\|null)?$/,
  int4: /^number(\|null)?$/,
  int8: /^number(\|null)?$/,
  timestamptz: /^string(\|null)?$/,
  _text: /^string\[\](\|null)?$/,
  jsonb: /^[A-Z]\w*(\|null)?$/,
};

test('the source has its statements, each with a name of its own', () => {
  const names = statements.map(({ name }) => name);
  expect(names.length).toBeGreaterThan(80);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
  expect(names.filter((name) => !/^[a-z_]+\.[a-z_]+$/.test(name))).toEqual([]);
});

test.each(statements.map((statement) => [statement.name, statement] as const))(
  '%s fits the schema',
  async (_name, { text, row }) => {
    const { parameters, columns } = await describer.describe(text);
    expect(parameters).toBe(new Set(text.match(/\$\d+/g)).size);
    if (row === null) return;
    expect(columns.map(([column]) => column).toSorted()).toEqual(Object.keys(row).toSorted());
    const strange = columns.filter(([column, type]) => !looksLike[type]?.test(row[column] ?? ''));
    expect(strange.map(([column, type]) => `${column} is ${type} and declared as ${row[column]}`)).toEqual(
      [],
    );
  },
);

describe('what is broken is reported', () => {
  const broken = (text: string) => describer.describe(text);

  test.each([
    ['a column that is not there', 'select nothing from sonar.task', '42703'],
    ['a table that is not there', 'select 1 from sonar.tasks', '42P01'],
    ['a type that does not fit', "update sonar.task set attempts = $1 || 'x'", '42804'],
    ['a word out of place', 'select from from sonar.task', '42601'],
  ])('%s', async (_what, text, code) => {
    await expect(broken(text)).rejects.toMatchObject({ code });
  });

  test('a statement of the source after its table has changed', async () => {
    const { text } = statements.find(({ name }) => name === 'task.plan_due') ?? { text: '' };
    await clone.database.script('alter table sonar.task rename column plan_due to plan_wanted');
    try {
      await expect(broken(text)).rejects.toMatchObject({ code: '42703' });
    } finally {
      await clone.database.script('alter table sonar.task rename column plan_wanted to plan_due');
    }
  });

  test('nothing is run by being described', async () => {
    await broken('delete from sonar.workspace');
    expect(
      await clone.database.rows({ name: '', text: 'select workspace_id from sonar.workspace', values: [] }),
    ).toEqual([{ workspace_id: 'default' }]);
  });
});

test('names, texts and row types are read from the source as they stand', () => {
  const source = `
    // é: positions are bytes
    interface PetRow { pet_id: PetId; name: string | null }
    export const pets = (db: Db, id: string): Promise<PetRow[]> =>
      db.rows(sql('pet.list')\`select pet_id, name from pet where id = \${id} and owner = \${owner(\`x\`)}\`);
    export async function fed(db: Db) { const [row] = await db.rows<{ fed: boolean }>(sql('pet.fed')\`select true as fed\`); }
    export const feed = (db: Db) => db.execute(sql('pet.feed')\`update pet set fed = true\`);`;
  expect(statementsOf(source, 'pets.ts')).toEqual([
    {
      name: 'pet.list',
      text: 'select pet_id, name from pet where id = $1 and owner = $2',
      file: 'pets.ts',
      row: { pet_id: 'PetId', name: 'string|null' },
    },
    { name: 'pet.fed', text: 'select true as fed', file: 'pets.ts', row: { fed: 'boolean' } },
    { name: 'pet.feed', text: 'update pet set fed = true', file: 'pets.ts', row: null },
  ]);
});
