// Text that PostgreSQL cannot hold is refused at the door, by name: further in it would be an internal fault.
import type { FastifyRequest } from 'fastify';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The body quotes what a command said: refusing it would lose a result, so its flow makes it storable. */
    quotesCommand?: boolean;
  }
}

export const badRequest = (message: string): Error => Object.assign(new Error(message), { statusCode: 400 });

/** Undefined where the bytes are not UTF-8. A byte order mark stays: a signature covers it. */
export function utf8Of(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** @throws a 400 that names the first text with a NUL or half a surrogate pair. */
export function assertStorable(request: FastifyRequest): Promise<void> {
  // Only an escape can bring either into a body that is UTF-8, so most bodies need no walk.
  const suspect = /\\u(0000|d[89a-f])/i.test(request.rawBody) && !request.routeOptions.config.quotesCommand;
  const place =
    (suspect ? placeIn(request.body, 'body') : undefined) ?? placeIn(request.query, 'querystring');
  if (place !== undefined) throw badRequest(`${place} holds a NUL or half a surrogate pair`);
  return Promise.resolve();
}

function placeIn(value: unknown, path: string): string | undefined {
  if (typeof value === 'string') return isStorable(value) ? undefined : path;
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [key, member] of Object.entries(value)) {
    const place = isStorable(key) ? placeIn(member, `${path}.${key.slice(0, 100)}`) : `a name in ${path}`;
    if (place !== undefined) return place;
  }
  return undefined;
}

const isStorable = (text: string): boolean => !text.includes('\0') && text.isWellFormed();
