// Where the API is and who is asking: options first, then the environment, then what `sonar up` left behind.
import { join } from 'node:path';
import { environment as names } from '#sonar/contracts/names.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { connectionFileName, defaultDataDir, readConnectionFile } from './connection-file.ts';

export interface Connection {
  apiUrl: string;
  apiUrlSource: string;
  token: string;
  tokenSource: string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

const fileSource = `${defaultDataDir}/${connectionFileName}`;
const wayOut = `start one here with "sonar up", or set ${names.apiUrl} and ${names.token} (or --api and --token)`;

export interface ConnectionOptions {
  api?: string;
  token?: string;
}

/**
 * The connection of one command. A token from the file goes only to the address in that file: a file in
 * some folder must not decide where a secret from elsewhere is sent, nor the other way round.
 * @throws SonarError `configuration`
 */
export function findConnection(
  options: ConnectionOptions,
  environment: Environment,
  workingDirectory: string,
): Connection {
  const address = firstOf(['--api', options.api], [names.apiUrl, environment[names.apiUrl]]);
  const secret = firstOf(['--token', options.token], [names.token, environment[names.token]]);
  const apiUrl = address === null ? null : checkedUrl(address.value, address.source);
  if (address && secret && apiUrl !== null)
    return { apiUrl, apiUrlSource: address.source, token: secret.value, tokenSource: secret.source };
  const file = secret ? null : readConnectionFile(join(workingDirectory, defaultDataDir, connectionFileName));
  if (file !== null && (apiUrl === null || apiUrl === file.apiUrl))
    return {
      apiUrl: checkedUrl(file.apiUrl, fileSource),
      apiUrlSource: address?.source ?? fileSource,
      token: file.token,
      tokenSource: fileSource,
    };
  if (address)
    throw new SonarError(
      'configuration',
      `no token for the API at ${apiUrl} (from ${address.source}): set ${names.token} or --token; an admin makes one with: sonar token create --role operator --name NAME`,
    );
  if (secret)
    throw new SonarError(
      'configuration',
      `a token is given (${secret.source}) but no API address: set ${names.apiUrl} or --api`,
    );
  throw new SonarError('configuration', `no Sonar API is known: ${wayOut}`);
}

/**
 * What a tag worker is told by its environment, filled up from the file where it says nothing.
 * @throws SonarError `configuration`
 */
export function workerEnvironment(
  options: ConnectionOptions,
  environment: Environment,
  workingDirectory: string,
): Record<string, string | undefined> {
  const connection = findConnection(options, environment, workingDirectory);
  const fromFile = connection.tokenSource === fileSource;
  const file = fromFile
    ? readConnectionFile(join(workingDirectory, defaultDataDir, connectionFileName))
    : null;
  const amqpUrl = environment[names.amqpUrl] || file?.worker?.amqpUrl;
  if (!amqpUrl)
    throw new SonarError(
      'configuration',
      `${names.amqpUrl} is not set: a worker takes its tasks from RabbitMQ, like amqp://USER:PASSWORD@HOST:5672`,
    );
  return {
    ...environment,
    [names.apiUrl]: connection.apiUrl,
    [names.token]: file?.worker?.token ?? connection.token,
    [names.amqpUrl]: amqpUrl,
  };
}

function firstOf(
  ...candidates: [source: string, value: string | undefined][]
): { source: string; value: string } | null {
  for (const [source, value] of candidates) if (value !== undefined && value !== '') return { source, value };
  return null;
}

/** http or https, without a slash at the end; a path in front of `/v1` is kept. */
function checkedUrl(text: string, source: string): string {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw new SonarError(
      'configuration',
      `${source}: "${text}" is no http or https address, like http://127.0.0.1:8080`,
    );
  if (url.username !== '' || url.password !== '')
    throw new SonarError(
      'configuration',
      `${source}: the address holds a password; give a token with --token or ${names.token}`,
    );
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}
