import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findConnection, workerEnvironment } from '#sonar/cli/connection.ts';
import { writeConnectionFile } from '#sonar/cli/connection-file.ts';

const left = {
  apiUrl: 'http://127.0.0.1:32001',
  token: 'from-file',
  worker: { token: 'of-worker', amqpUrl: 'amqp://127.0.0.1:1' },
};
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sonar-connection-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));
const leave = (): void => writeConnectionFile(join(folder, '.sonar', 'cli.json'), left);

test('options come before the environment, the environment before the file', () => {
  leave();
  const environment = { SONAR_API_URL: 'http://env.test/', SONAR_TOKEN: 'from-env' };
  expect(findConnection({ api: 'https://opt.test/sonar/', token: 'opt' }, environment, folder)).toEqual({
    apiUrl: 'https://opt.test/sonar',
    apiUrlSource: '--api',
    token: 'opt',
    tokenSource: '--token',
  });
  expect(findConnection({}, environment, folder)).toMatchObject({
    apiUrl: 'http://env.test',
    token: 'from-env',
  });
  expect(findConnection({}, {}, folder)).toEqual({
    apiUrl: left.apiUrl,
    apiUrlSource: '.sonar/cli.json',
    token: left.token,
    tokenSource: '.sonar/cli.json',
  });
});

test('the file is readable by its owner only', () => {
  leave();
  expect(statSync(join(folder, '.sonar', 'cli.json')).mode & 0o777).toBe(0o600);
});

test('the token of the file goes to the address of the file only', () => {
  leave();
  expect(findConnection({ api: left.apiUrl }, {}, folder)).toMatchObject({ token: left.token });
  expect(() => findConnection({ api: 'http://elsewhere.test' }, {}, folder)).toThrow(
    /no token for the API at http:\/\/elsewhere.test/,
  );
  expect(() => findConnection({ token: 'mine' }, {}, folder)).toThrow(
    /a token is given \(--token\) but no API address/,
  );
});

test.each([
  [{}, /no Sonar API is known: .*sonar up.*SONAR_API_URL/],
  [{ api: 'localhost:80', token: 't' }, /--api: "localhost:80" is no http or https address/],
  [{ api: 'http://u:p@h.test', token: 't' }, /--api: the address holds a password/],
])('%j is refused with the way out', (options, message) => {
  expect(() => findConnection(options, {}, folder)).toThrow(
    expect.objectContaining({ code: 'configuration', message: expect.stringMatching(message) }),
  );
});

test('a file that is no connection is named', () => {
  leave();
  writeFileSync(join(folder, '.sonar', 'cli.json'), '{"apiUrl": 1}');
  expect(() => findConnection({}, {}, folder)).toThrow(/cli.json does not hold/);
});

test('a worker gets the token of workers and the broker from the file', () => {
  leave();
  expect(workerEnvironment({}, { PATH: '/bin' }, folder)).toEqual({
    PATH: '/bin',
    SONAR_API_URL: left.apiUrl,
    SONAR_TOKEN: 'of-worker',
    SONAR_AMQP_URL: 'amqp://127.0.0.1:1',
  });
});

test('a worker without a broker is told the variable', () => {
  expect(() => workerEnvironment({ api: 'http://h.test', token: 't' }, {}, folder)).toThrow(
    /SONAR_AMQP_URL is not set/,
  );
});
