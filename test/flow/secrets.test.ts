// A secret is in the clear in one place only: the answer to `started`. Without it the task waits and has not failed.
import { defaultWorkspace } from '#sonar/contracts/ids.ts';
import { setSecret } from '#sonar/flow/keep-secrets.ts';
import { seal, unseal } from '#sonar/platform/sealing.ts';
import { parseMasterKeys } from '#sonar/platform/signing.ts';
import { listSecrets } from '#sonar/stores/secrets.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { openLaboratory, testKeys } from '../fixtures/laboratory.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const value = 'hunter2-ünïcode';

const source = `
sonar: 1
name: with-secrets
steps:
  ask:
    tags: [t]
    secrets: {API_KEY: shodan-key, OTHER: other}
    command: [ask]
`;

test('a task waits for its secrets, the step says for which, and it runs when they are set', async () => {
  const lab = openLaboratory(clone, objects);
  const worker = await lab.worker();
  const scan = await lab.scan(source);
  await lab.plan(scan);
  const waits = async () => {
    const [row] = await clone.database.rows<{ missing: string[]; starved: string | null }>(query`
      select missing_secrets as missing, starved_since as starved from sonar.scan_step where scan_id = ${scan.scan_id}`);
    return row;
  };
  await lab.place();
  expect(await waits()).toEqual({ missing: ['other', 'shodan-key'], starved: null });
  expect(await lab.tasks(scan)).toMatchObject([{ status: 'Pending', attempts: 0 }]);
  await setSecret(lab, defaultWorkspace, { name: 'shodan-key', value, updatedBy: 'me' });
  await lab.place();
  expect(await waits()).toMatchObject({ missing: ['other'] });
  await setSecret(lab, defaultWorkspace, { name: 'other', value: 'first', updatedBy: 'me' });
  await setSecret(lab, defaultWorkspace, { name: 'other', value: 'second', updatedBy: 'you' });
  await lab.place();
  expect(await waits()).toMatchObject({ missing: [] });

  const [attempt] = await lab.published(scan);
  const answer = await lab.start(attempt!, worker);
  expect(answer).toMatchObject({ disposition: 'run', secrets: { API_KEY: value, OTHER: 'second' } });
  expect(await listSecrets(clone.database, defaultWorkspace, '', 10)).toMatchObject([
    { name: 'other', updated_by: 'you' },
    { name: 'shodan-key' },
  ]);
});

test('no table and no message holds a value', async () => {
  const lab = openLaboratory(clone, objects);
  await lab.worker();
  const scan = await lab.scan(source);
  for (const name of ['shodan-key', 'other'])
    await setSecret(lab, defaultWorkspace, { name, value, updatedBy: 'me' });
  await lab.plan(scan);
  await lab.place();
  expect(await lab.published(scan)).toHaveLength(1);
  const tables = await clone.database.rows<{ name: string }>(query`
    select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname in ('sonar', 'workflow_coordination')`);
  const holding: string[] = [];
  for (const { name } of tables) {
    const rows = await clone.database.rows<{ found: boolean }>({
      name: '',
      text: `select exists (select from ${name} t where t::text like '%' || $1 || '%') as found`,
      values: [value],
    });
    if (rows[0]?.found) holding.push(name);
  }
  expect(holding).toEqual([]);
});

test('a skipped delivery is told no secret', async () => {
  const lab = openLaboratory(clone, objects);
  const worker = await lab.worker();
  for (const name of ['shodan-key', 'other'])
    await setSecret(lab, defaultWorkspace, { name, value, updatedBy: 'me' });
  const scan = await lab.scan(source);
  await lab.plan(scan);
  await lab.place();
  const [attempt] = await lab.published(scan);
  await lab.start(attempt!, worker);
  expect(JSON.stringify(await lab.start(attempt!, worker))).not.toContain('hunter2');
});

describe('what is sealed', () => {
  const [current, old] = ['new', 'old'].map((id) => `${id}:${testKeys.get(id)?.toString('base64')}`);

  test('opens with its key and at its place, also after the keys were rotated', () => {
    const sealed = seal(parseMasterKeys(old!), 'a', value);
    expect(unseal(testKeys, 'a', sealed)).toBe(value);
    expect(sealed.sealed).not.toContain(Buffer.from(value).toString('base64url').slice(0, 8));
    expect(seal(testKeys, 'a', value).sealed).not.toBe(seal(testKeys, 'a', value).sealed);
  });

  test('opens nowhere else, and not when it was altered', () => {
    const sealed = seal(testKeys, 'a', value);
    expect(() => unseal(testKeys, 'b', sealed)).toThrow('does not open');
    const altered = `${sealed.sealed.slice(0, -2)}${sealed.sealed.endsWith('AA') ? 'BB' : 'AA'}`;
    expect(() => unseal(testKeys, 'a', { ...sealed, sealed: altered })).toThrow('does not open');
    expect(() => unseal(testKeys, 'a', { ...sealed, sealed: 'v1.' })).toThrow('does not open');
    expect(() => unseal(parseMasterKeys(old!), 'a', sealed)).toThrow('sealed with master key "new"');
    expect(current).toBeDefined();
  });
});
