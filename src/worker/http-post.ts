// One POST and its whole answer over connections that are kept. Node's own client costs a third of what `fetch` costs,
// and a short command is little more than its two callbacks.
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';

export interface Poster {
  /** Redirects are answers like others. @throws the network's error, or one about the answer's size or the signal. */
  post(url: string, headers: Record<string, string>, body: string, bounds: PostBounds): Promise<PostAnswer>;
  /** Closes what is kept open. */
  close(): void;
}

export interface PostBounds {
  signal: AbortSignal;
  timeoutMs: number;
  maxAnswerBytes: number;
}

export interface PostAnswer {
  status: number;
  text: string;
}

export function createPoster(): Poster {
  // No bound on connections: there are never more calls under way than slots and a few.
  const agents = { http: new HttpAgent({ keepAlive: true }), https: new HttpsAgent({ keepAlive: true }) };

  function once(url: string, headers: Record<string, string>, body: string, bounds: PostBounds) {
    const { promise, resolve, reject } = Promise.withResolvers<PostAnswer>();
    const secure = url.startsWith('https:');
    const options = {
      method: 'POST',
      headers: { ...headers, 'content-length': String(Buffer.byteLength(body)) },
    };
    let answering = false;
    const onAnswer = (response: IncomingMessage): void => {
      answering = true;
      wholeText(response, bounds.maxAnswerBytes).then(
        (text) => resolve({ status: response.statusCode ?? 0, text }),
        reject,
      );
    };
    const call = secure
      ? httpsRequest(url, { ...options, agent: agents.https }, onAnswer)
      : httpRequest(url, { ...options, agent: agents.http }, onAnswer);
    // Whoever ends the call settles it: Node destroys a request without an `error` where the server switches protocols.
    const end = (error: Error): void => {
      reject(error);
      call.destroy(error);
    };
    const timer = setTimeout(
      () => end(new Error(`no answer within ${bounds.timeoutMs} ms`)),
      bounds.timeoutMs,
    );
    const onAbort = (): void => end(new DOMException('the call was ended', 'AbortError'));
    bounds.signal.addEventListener('abort', onAbort, { once: true });
    if (bounds.signal.aborted) onAbort();
    call.on('error', reject);
    // An answer that has begun settles by itself, perhaps later than this.
    call.on('close', () => {
      if (!answering) reject(new Error('the connection ended without an answer'));
    });
    call.end(body);
    const answered = promise.finally(() => {
      clearTimeout(timer);
      bounds.signal.removeEventListener('abort', onAbort);
    });
    return { answered, call };
  }

  return {
    async post(url, headers, body, bounds) {
      const { answered, call } = once(url, headers, body, bounds);
      try {
        return await answered;
      } catch (error) {
        // A kept connection that the server closed in this very moment says nothing about the server. Every call may
        // be sent twice.
        if (!call.reusedSocket || (error as { code?: unknown }).code !== 'ECONNRESET') throw error;
        return await once(url, headers, body, bounds).answered;
      }
    },
    close() {
      agents.http.destroy();
      agents.https.destroy();
    },
  };
}

async function wholeText(response: IncomingMessage, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    // Leaving the loop destroys the response, and its connection with it.
    if (size > maxBytes) throw new Error(`the answer is larger than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
