// Migrations apply once, in order, whoever asks and however many at once; what does not fit this build is refused.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { assertSchemaCurrent, migrate, migrationStatus } from '#sonar/db/migrator.ts';
import { createLogger } from '#sonar/platform/logger.ts';
import { openControlParts } from '#sonar/roles/control-parts.ts';
import { type ClonedDatabase, cloneDatabase } from '../fixtures/cloned-database.ts';
import { query } from '../fixtures/query.ts';
import { stackAddresses } from '../fixtures/stack-addresses.ts';

const names = readdirSync(join(__dirname, '../../migrations')).toSorted();
let clone: ClonedDatabase;
beforeEach(async () => {
  clone = await cloneDatabase('template1');
});
afterEach(() => clone.drop());

test('all are applied in order, and a second run applies nothing', async () => {
  expect(await migrate(clone.url)).toEqual({ applied: names });
  expect(await migrate(clone.url)).toEqual({ applied: [] });
  expect(await migrationStatus(clone.url)).toEqual({ applied: names, pending: [] });
  await expect(assertSchemaCurrent(clone.database)).resolves.toBeUndefined();
});

test('of migrators at once each file is applied by one', async () => {
  const runs = await Promise.all(Array.from({ length: 4 }, () => migrate(clone.url)));
  expect(runs.flatMap(({ applied }) => applied).toSorted()).toEqual(names);
});

test('one that was interrupted goes on with the file it had not finished', async () => {
  await clone.database.script('create schema workflow_coordination');
  await expect(migrate(clone.url)).rejects.toMatchObject({ code: '42P06' });
  expect(await migrationStatus(clone.url)).toEqual({ applied: [], pending: names });
  await clone.database.script('drop schema workflow_coordination');
  expect(await migrate(clone.url)).toEqual({ applied: names });
});

test('a file that was changed after it was applied is named', async () => {
  await migrate(clone.url);
  await clone.database.execute(
    query`update sonar.schema_migration set sha256 = 'other' where name = ${names[1]}`,
  );
  const refused = {
    code: 'schema_version',
    message: `migration ${names[1]} was changed after it was applied; restore the file`,
  };
  await expect(migrate(clone.url)).rejects.toMatchObject(refused);
  await expect(assertSchemaCurrent(clone.database)).rejects.toMatchObject(refused);
});

test('a database of a newer build is left alone', async () => {
  await migrate(clone.url);
  await clone.database.execute(
    query`insert into sonar.schema_migration (name, sha256) values ('9999_later.sql', 'x')`,
  );
  const refused = {
    code: 'schema_version',
    message: 'the database has migration 9999_later.sql, which this build lacks; run a newer build',
  };
  await expect(migrate(clone.url)).rejects.toMatchObject(refused);
  await expect(migrationStatus(clone.url)).rejects.toMatchObject(refused);
  await expect(assertSchemaCurrent(clone.database)).rejects.toMatchObject(refused);
});

test.each([
  ['no schema at all', names.length, names[0]],
  ['an old schema', 1, names.at(-1)],
])('control roles refuse %s and name the command that mends it', async (_what, lacking, first) => {
  if (lacking === 1) {
    await migrate(clone.url);
    await clone.database.execute(query`delete from sonar.schema_migration where name = ${first}`);
  }
  const addresses = stackAddresses();
  const environment = {
    SONAR_DATABASE_URL: clone.url,
    SONAR_AMQP_URL: addresses.amqpUrl,
    SONAR_TEMPORAL_ADDRESS: addresses.temporalAddress,
    SONAR_TEMPORAL_NAMESPACE: addresses.temporalNamespace,
    SONAR_S3_ENDPOINT: addresses.s3Endpoint,
    SONAR_S3_BUCKET: addresses.s3Bucket,
    SONAR_MASTER_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}`,
  };
  await expect(openControlParts(environment, createLogger('test', 'silent'))).rejects.toMatchObject({
    code: 'schema_version',
    message: `the database lacks ${lacking} migration(s), first ${first}; run: sonar migrate up`,
  });
});
