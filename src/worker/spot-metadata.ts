// EC2's instance metadata, version 2: a token first, then questions. 404 is its way of saying "nothing".
import { z } from 'zod';
import { messageOf } from '#sonar/platform/errors.ts';
import { bytesOf } from './response-bytes.ts';

export type SpotWord =
  | { kind: 'quiet' }
  /** The machine is likelier than others to be taken; nothing is decided. */
  | { kind: 'rebalance' }
  /** It will be taken. `at` is when, by this machine's clock in Unix milliseconds; null where that cannot be read. */
  | { kind: 'interruption'; action: string; at: number | null }
  | { kind: 'unavailable'; reason: string };

export interface SpotMetadata {
  /** One look; never throws. */
  look(signal: AbortSignal): Promise<SpotWord>;
}

const requestTimeoutMs = 2_000;
const tokenSeconds = 21_600;
const maxAnswerBytes = 16_384;
const actionSchema = z.object({ action: z.string().max(100), time: z.string().max(100).optional() });

type Answer = { status: number; text: string };

export function createSpotMetadata(endpoint: string): SpotMetadata {
  let token: string | null = null;

  async function ask(
    method: 'GET' | 'PUT',
    path: string,
    headers: Record<string, string>,
    signal: AbortSignal,
  ) {
    const response = await fetch(`${endpoint}/latest/${path}`, {
      method,
      headers,
      redirect: 'manual',
      signal: AbortSignal.any([signal, AbortSignal.timeout(requestTimeoutMs)]),
    });
    return { status: response.status, text: await boundedText(response) };
  }

  async function freshToken(signal: AbortSignal): Promise<string> {
    const headers = { 'x-aws-ec2-metadata-token-ttl-seconds': String(tokenSeconds) };
    const { status, text } = await ask('PUT', 'api/token', headers, signal);
    const given = text.trim();
    if (status !== 200) throw new Error(`the request for a session token was answered ${status}`);
    // What could not stand in a header is no token, but somebody else's page.
    if (!/^[\x21-\x7e]{1,512}$/.test(given)) throw new Error('the session token is none');
    return given;
  }

  /** Null where there is nothing. A token that ran out, or was lost by a service that restarted, is fetched anew once. */
  async function get(path: string, signal: AbortSignal): Promise<string | null> {
    for (let tried = 0; ; tried += 1) {
      token ??= await freshToken(signal);
      const answer: Answer = await ask('GET', path, { 'x-aws-ec2-metadata-token': token }, signal);
      if (answer.status === 200) return answer.text;
      if (answer.status === 404) return null;
      token = null;
      if (answer.status !== 401 || tried > 0) throw new Error(`${path} was answered ${answer.status}`);
    }
  }

  return {
    async look(signal) {
      try {
        const action = await get('meta-data/spot/instance-action', signal);
        if (action !== null) return interruptionOf(action);
        const rebalance = await get('meta-data/events/recommendations/rebalance', signal);
        if (rebalance === null) return { kind: 'quiet' };
        if (!isObject(rebalance)) throw new Error('the rebalance recommendation is not understood');
        return { kind: 'rebalance' };
      } catch (error) {
        const cause = (error as { cause?: unknown } | null)?.cause;
        return { kind: 'unavailable', reason: messageOf(cause ?? error) };
      }
    },
  };
}

/** @throws where it is no instance action: a page of somebody else's must not end a worker. */
function interruptionOf(text: string): SpotWord {
  const parsed = actionSchema.safeParse(json(text));
  if (!parsed.success) throw new Error('the instance action is not understood');
  const { action, time } = parsed.data;
  // "none" is what a machine that was spared is told.
  if (action === 'none') return { kind: 'quiet' };
  const at = Date.parse(time ?? '');
  return { kind: 'interruption', action, at: Number.isNaN(at) ? null : at };
}

const isObject = (text: string): boolean => z.looseObject({}).safeParse(json(text)).success;

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function boundedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of bytesOf(response)) {
    size += chunk.length;
    if (size > maxAnswerBytes) throw new Error(`the answer is larger than ${maxAnswerBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
