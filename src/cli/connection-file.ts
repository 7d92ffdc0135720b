// `.sonar/cli.json`: what `sonar up` leaves for the commands that are given in the same folder.
import { readFileSync } from 'node:fs';
import { SonarError } from '#sonar/platform/errors.ts';
import { writePrivateText } from './private-file.ts';

export const defaultDataDir = '.sonar';
export const connectionFileName = 'cli.json';

export interface ConnectionFile {
  apiUrl: string;
  token: string;
  /** For `sonar worker start`: a worker holds no token of an operator. */
  worker?: { token: string; amqpUrl: string };
}

/** Null when there is no such file. @throws SonarError `configuration` when it is there and cannot be used. */
export function readConnectionFile(path: string): ConnectionFile | null {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw new SonarError(
      'configuration',
      `${path} cannot be read (${code}); only its owner may, who ran "sonar up"`,
      {
        cause: error,
      },
    );
  }
  const content = parsedObject(text);
  if (typeof content?.apiUrl !== 'string' || typeof content.token !== 'string')
    throw new SonarError('configuration', `${path} does not hold {apiUrl, token}; "sonar up" writes it anew`);
  const worker = content.worker as Partial<ConnectionFile['worker']>;
  return {
    apiUrl: content.apiUrl,
    token: content.token,
    ...(typeof worker?.token === 'string' && typeof worker.amqpUrl === 'string'
      ? { worker: { token: worker.token, amqpUrl: worker.amqpUrl } }
      : {}),
  };
}

/** It holds secrets: nobody but its owner may read it. */
export function writeConnectionFile(path: string, content: ConnectionFile): void {
  writePrivateText(path, `${JSON.stringify(content, null, 2)}\n`);
}

function parsedObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
