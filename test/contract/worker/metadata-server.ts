// The instance metadata service of a test: version 2 with tokens, and whatever a script says instead.
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface MetadataServer extends AsyncDisposable {
  readonly url: string;
  /** What stands at `spot/instance-action` and at the rebalance recommendation; null is 404. */
  action: string | null;
  rebalance: string | null;
  /** Overrides an answer; `hang` gives none. */
  script: ((request: IncomingMessage) => { status: number; body: string } | 'hang' | undefined) | undefined;
  /** Tokens given so far are worth nothing from here on. */
  expireTokens(): void;
  /** `METHOD path status`, in order. */
  readonly log: string[];
}

export const interruptionIn = (ms: number, action = 'terminate'): string =>
  JSON.stringify({ action, time: new Date(Date.now() + ms).toISOString() });

export async function startMetadataServer(changed: () => void = () => undefined): Promise<MetadataServer> {
  const log: string[] = [];
  const tokens = new Set<string>();

  function answer(request: IncomingMessage): { status: number; body: string } {
    const path = request.url ?? '';
    if (path === '/latest/api/token') {
      const seconds = Number(request.headers['x-aws-ec2-metadata-token-ttl-seconds']);
      if (request.method !== 'PUT' || !(seconds >= 1 && seconds <= 21_600)) return { status: 400, body: '' };
      const token = randomUUID();
      tokens.add(token);
      return { status: 200, body: token };
    }
    if (!tokens.has(String(request.headers['x-aws-ec2-metadata-token']))) return { status: 401, body: '' };
    const text = path.endsWith('/spot/instance-action')
      ? server.action
      : path.endsWith('/events/recommendations/rebalance')
        ? server.rebalance
        : null;
    return text === null ? { status: 404, body: '<html>Not Found</html>' } : { status: 200, body: text };
  }

  const http = createServer((request, response) => {
    const reply = server.script?.(request) ?? answer(request);
    log.push(`${request.method} ${request.url} ${reply === 'hang' ? 'hang' : reply.status}`);
    changed();
    if (reply === 'hang') return;
    response.statusCode = reply.status;
    response.end(reply.body);
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const server: MetadataServer = {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    action: null,
    rebalance: null,
    script: undefined,
    expireTokens: () => tokens.clear(),
    log,
    async [Symbol.asyncDispose]() {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
  return server;
}
