import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import { SonarError } from '#sonar/platform/errors.ts';

export const apiHost = '127.0.0.1';
// Above the blocks of the local services, below the ports that systems give to outgoing connections.
const firstPort = 32_000;
const lastPort = 32_767;
const attempts = 64;

/** The port of the last start where it is free, else a free one: so an address stays good over restarts. */
export async function chooseApiPort(rememberedUrl: string | undefined): Promise<number> {
  const remembered = Number(URL.parse(rememberedUrl ?? '')?.port ?? 0);
  if (remembered > 0 && (await isFree(remembered))) return remembered;
  for (let attempt = 0; attempt < attempts; attempt++) {
    const port = randomInt(firstPort, lastPort + 1);
    if (await isFree(port)) return port;
  }
  throw new SonarError(
    'configuration',
    `no free port for the api between ${firstPort} and ${lastPort}; see who has them: ss -ltnp`,
  );
}

function isFree(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const server = createServer();
  server.once('error', () => resolve(false));
  server.listen({ host: apiHost, port, exclusive: true }, () => server.close(() => resolve(true)));
  return promise;
}
