import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface AskedFor {
  method: string;
  url: URL;
  authorization: string | undefined;
  body: unknown;
}

export type Answer = { status?: number; json?: unknown; text?: string } | 'hang up';

/** An api that answers as a test says, on a real socket; it may go away and come back on the same port. */
export class ScriptedApi {
  readonly asked: AskedFor[] = [];
  #server: Server | undefined;
  #port = 0;
  answer: (request: AskedFor) => Answer;

  constructor(answer: (request: AskedFor) => Answer) {
    this.answer = answer;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async start(): Promise<this> {
    const server = createServer((request, response) => void this.#serve(request, response));
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    server.once('error', reject);
    server.listen(this.#port, '127.0.0.1', () => resolve());
    await promise;
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
    return this;
  }

  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (!server) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    server.close(() => resolve());
    server.closeAllConnections();
    await promise;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = '';
    for await (const chunk of request) text += String(chunk);
    const asked: AskedFor = {
      method: request.method ?? '',
      url: new URL(request.url ?? '', this.url),
      authorization: request.headers.authorization,
      body: text === '' ? undefined : JSON.parse(text),
    };
    this.asked.push(asked);
    const answer = this.answer(asked);
    if (answer === 'hang up') {
      request.socket.destroy();
      return;
    }
    response.writeHead(answer.status ?? 200, { 'content-type': 'application/json' });
    response.end(answer.text ?? JSON.stringify(answer.json));
  }
}

export function problem(status: number, code: string, detail: string, more: object = {}): Answer {
  return { status, json: { type: 'about:blank', title: code, status, code, detail, ...more } };
}

/** Answers by method and path; everything else is not found. */
export const route =
  (routes: Record<string, Answer | ((asked: AskedFor) => Answer)>) =>
  (asked: AskedFor): Answer => {
    const answer = routes[`${asked.method} ${asked.url.pathname}`];
    if (answer === undefined) return problem(404, 'not_found', `no ${asked.url.pathname}`);
    return typeof answer === 'function' ? answer(asked) : answer;
  };
