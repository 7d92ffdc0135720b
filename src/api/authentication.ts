// Who asks: a bearer token with a role on every route, and on callbacks the attempt's signature as well.
import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { TokenRole } from '#sonar/contracts/scan-api.ts';
import type { Db } from '#sonar/db/pool.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { deriveCredential, type MasterKeys, verifyBody } from '#sonar/platform/signing.ts';
import { findToken, type TokenRow } from '#sonar/stores/tokens.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The body as it was sent: what a signature covers. */
    rawBody: string;
    token: TokenRow;
  }
  interface FastifyContextConfig {
    /** Roles that may use the route; `open` for health alone. */
    access?: Access;
  }
}
export type Access = 'open' | 'viewer' | 'operator' | 'admin' | 'worker';

const grants: Record<Exclude<Access, 'open'>, readonly TokenRole[]> = {
  viewer: ['viewer', 'operator', 'admin'],
  operator: ['operator', 'admin'],
  admin: ['admin'],
  worker: ['worker'],
};

// A revoked token works this much longer at most; every callback would ask the database otherwise.
const cachedMs = 5_000;
const maxCached = 1_000;

export type Authenticate = (request: FastifyRequest) => Promise<void>;

/** @throws SonarError `unauthenticated` or `forbidden`, naming the way out. */
export function createAuthentication(db: Db): Authenticate {
  const cache = new Map<string, { token: TokenRow | undefined; until: number }>();

  const lookUp = async (secret: string): Promise<TokenRow | undefined> => {
    const hash = createHash('sha256').update(secret).digest();
    const key = hash.toString('base64');
    const cached = cache.get(key);
    if (cached && cached.until > performance.now()) return cached.token;
    const token = await findToken(db, hash);
    if (cache.size >= maxCached) cache.clear();
    // Unknown tokens are not remembered: one that was just made must work at once.
    if (token) cache.set(key, { token, until: performance.now() + cachedMs });
    return token;
  };

  return async (request) => {
    const access = request.routeOptions.config.access ?? 'admin';
    if (access === 'open') return;
    const [scheme, secret] = (request.headers.authorization ?? '').split(' ');
    if (scheme?.toLowerCase() !== 'bearer' || !secret)
      throw new SonarError(
        'unauthenticated',
        'no token; send "Authorization: Bearer TOKEN" (make one with: sonar token create)',
      );
    const token = await lookUp(secret);
    if (!token)
      throw new SonarError(
        'unauthenticated',
        'the token is unknown or revoked; make one with: sonar token create',
      );
    if (!grants[access].includes(token.role))
      throw new SonarError(
        'forbidden',
        `token "${token.name}" has the role ${token.role}; this needs ${grants[access].join(' or ')}`,
      );
    request.token = token;
  };
}

/** @throws SonarError `clock_skew` (send again by the server's time) or `unauthenticated`. */
export function assertSigned(
  request: FastifyRequest,
  keys: MasterKeys,
  purpose: 'attempt' | 'incarnation',
  keyId: string,
  id: string,
): void {
  const key = keys.get(keyId);
  if (!key) throw new SonarError('configuration', `master key "${keyId}" is not in SONAR_MASTER_KEYS`);
  const verdict = verifyBody(
    deriveCredential(key, purpose, id),
    request.headers,
    request.rawBody,
    new Date(),
  );
  if (verdict === 'skew')
    throw new SonarError('clock_skew', "the timestamp of the signature is too far from the server's time");
  if (verdict === 'invalid')
    throw new SonarError('unauthenticated', `the signature is not that of this ${purpose}`);
}
