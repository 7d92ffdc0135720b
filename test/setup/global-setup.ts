// One local stack a run, and in its PostgreSQL a migrated database that test files clone. jest's workers inherit
// the environment, so what is put there reaches every test of the projects that share the stack.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { environment } from '#sonar/contracts/names.ts';
import { migrate } from '#sonar/db/migrator.ts';
import { openDatabase } from '#sonar/db/pool.ts';
import { type Stack, type StackEnvironment, startStack } from '#sonar/stack/stack.ts';
import { templateDatabase } from '../fixtures/template-database.ts';

declare global {
  var sonarTestStack: { stack: Stack; directory: string } | undefined;
}

/** `SONAR_DATABASE_URL` becomes `SONAR_TEST_DATABASE_URL`, `AWS_REGION` `SONAR_TEST_AWS_REGION`. */
const testVariable = (name: string): string => `SONAR_TEST_${name.replace(/^SONAR_/, '')}`;

/** A service that such a variable names already is used as it is: what saves its start while one works on tests. */
const namedServices = (): NodeJS.ProcessEnv =>
  Object.fromEntries(
    [...Object.values(environment), 'AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_REGION'].map(
      (name) => [name, process.env[testVariable(name)]],
    ),
  );

export default async function startSharedStack(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'sonar-test-stack-'));
  let stack: Stack | undefined;
  try {
    stack = await startStack({ dataDir: directory, temporalUi: false, environment: namedServices() });
    await makeTemplate(stack.env.SONAR_DATABASE_URL);
  } catch (fault) {
    await stack?.stop();
    rmSync(directory, { recursive: true, force: true });
    throw fault;
  }
  globalThis.sonarTestStack = { stack, directory };
  for (const name of Object.keys(stack.env) as (keyof StackEnvironment)[])
    process.env[testVariable(name)] = stack.env[name];
}

async function makeTemplate(url: string): Promise<void> {
  const database = openDatabase({ url, applicationName: 'sonar test setup', maxConnections: 1 });
  try {
    await database.script(`drop database if exists ${templateDatabase} with (force)`);
    await database.script(`create database ${templateDatabase}`);
  } finally {
    await database.close();
  }
  const template = new URL(url);
  template.pathname = `/${templateDatabase}`;
  await migrate(template.href);
}
