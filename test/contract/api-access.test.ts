// No route answers without a token, or to a role that it is not for; iterated over the routes themselves, so that a new
// one cannot slip through.

import { createHash } from 'node:crypto';
import { type TokenRole, tokenRoles } from '#sonar/contracts/scan-api.ts';
import { newId } from '#sonar/platform/ids.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';
import { type ServedApi, serveApi } from '../fixtures/served-api.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const people: TokenRole[] = ['viewer', 'operator', 'admin'];

/** Who may use what. A route that is not here fails the test that compares the two. */
const expected: Record<string, TokenRole[] | 'open'> = {
  'GET /health/live': 'open',
  'GET /health/ready': 'open',
  'GET /v1/openapi.json': people,
  'POST /v1/definitions/validate': people,
  'POST /v1/definitions/plan': ['operator', 'admin'],
  'DELETE /v1/definitions/:name': ['operator', 'admin'],
  'POST /v1/definitions': ['operator', 'admin'],
  'GET /v1/definitions': people,
  'POST /v1/scans': ['operator', 'admin'],
  'GET /v1/scans': people,
  'GET /v1/scans/:id': people,
  'POST /v1/scans/:id/cancel': ['operator', 'admin'],
  'POST /v1/scans/:id/pause': ['operator', 'admin'],
  'POST /v1/scans/:id/resume': ['operator', 'admin'],
  'POST /v1/scans/:id/retry': ['operator', 'admin'],
  'DELETE /v1/scans/:id': ['operator', 'admin'],
  'GET /v1/scans/:id/events': people,
  'GET /v1/poison': people,
  'GET /v1/poison/:id': people,
  'POST /v1/poison/:id/retry': ['operator', 'admin'],
  'POST /v1/poison/retry': ['operator', 'admin'],
  'GET /v1/tasks/:id/attempts': people,
  'GET /v1/tasks/:id/logs': people,
  'GET /v1/tasks/:id/outputs': people,
  'GET /v1/tasks/:id/outputs/place': people,
  'GET /v1/tasks': people,
  'GET /v1/tasks/:id': people,
  'POST /v1/tasks/:id/retry': ['operator', 'admin'],
  'GET /v1/inventory': people,
  'GET /v1/inventory/diff': people,
  'GET /v1/inventory/types': people,
  'POST /v1/inventory/imports': ['operator', 'admin'],
  'GET /v1/workers': people,
  'POST /v1/tokens': ['admin'],
  'POST /v1/secrets': ['admin'],
  'GET /v1/secrets': people,
  'POST /v1/files': ['operator', 'admin'],
  'POST /v1/files/confirm': ['operator', 'admin'],
  'POST /v1/workers': ['worker'],
  'POST /v1/workers/:id/pulses': ['worker'],
  'POST /v1/attempts/:id/started': ['worker'],
  'POST /v1/attempts/:id/inputs': ['worker'],
  'POST /v1/attempts/:id/uploads': ['worker'],
  'POST /v1/attempts/:id/result': ['worker'],
  'POST /v1/attempts/:id/release': ['worker'],
};

/** `METHOD /path` of every route, out of the router's own tree. */
function routesOf(app: ServedApi['app']): string[] {
  const prefixes: string[] = [];
  return app
    .printRoutes({ commonPrefix: false })
    .split('\n')
    .flatMap((line) => {
      const [, indent = '', path = '', methods = ''] =
        /^([│ ]*)[├└]── (\S+)(?: \(([A-Z, ]+)\))?/.exec(line) ?? [];
      if (path === '') return [];
      prefixes.length = indent.length / 4;
      const whole = [...prefixes, path].join('');
      prefixes.push(path);
      return methods === '' ? [] : methods.split(', ').map((method) => `${method} ${whole}`);
    });
}

const urlOf = (route: string): string => route.split(' ')[1]!.replace(':id', newId());
const methodOf = (route: string) => route.split(' ')[0] as 'GET' | 'POST' | 'HEAD';

test('the routes are those that the table says, and a HEAD has the access of its GET', async () => {
  await using api = await serveApi(clone, objects);
  const routes = routesOf(api.app);
  expect(routes.filter((route) => !route.startsWith('HEAD')).toSorted()).toEqual(
    Object.keys(expected).toSorted(),
  );
  for (const route of routes.filter((candidate) => candidate.startsWith('HEAD'))) {
    const answer = await api.request({ method: 'HEAD', url: urlOf(route) });
    expect([route, answer.status === 401]).toEqual([
      route,
      expected[route.replace('HEAD', 'GET')] !== 'open',
    ]);
  }
});

test.each(Object.keys(expected).filter((route) => expected[route] !== 'open'))(
  '%s refuses no token, a wrong one, and every role that it is not for',
  async (route) => {
    await using api = await serveApi(clone, objects);
    const ask = (authorization: string | undefined) =>
      api.request({
        method: methodOf(route),
        url: urlOf(route),
        headers: authorization === undefined ? {} : { authorization },
        ...(methodOf(route) === 'POST' ? { payload: {} } : {}),
      });
    for (const authorization of [
      undefined,
      '',
      'Bearer',
      'Bearer nonsense',
      `Basic ${api.tokens.admin}`,
      api.tokens.admin,
    ])
      expect(await ask(authorization)).toMatchObject({ status: 401, body: { code: 'unauthenticated' } });
    const refused: TokenRole[] = [];
    for (const role of tokenRoles) {
      const { status, body } = await ask(`Bearer ${api.tokens[role]}`);
      if (status === 403 && body.code === 'forbidden') refused.push(role);
      expect(status).not.toBe(401);
    }
    const allowed = expected[route] as TokenRole[];
    expect(refused).toEqual(tokenRoles.filter((role) => !allowed.includes(role)));
  },
);

test('the open routes say nothing but health', async () => {
  await using api = await serveApi(clone, objects);
  expect(await api.ask('GET', '/health/live', { as: null })).toMatchObject({
    status: 200,
    body: { status: 'ok' },
  });
  expect(await api.ask('GET', '/health/ready', { as: null })).toMatchObject({
    status: 200,
    body: { status: 'ok', checks: { postgresql: 'ok', temporal: 'ok', s3: 'ok' } },
  });
});

test('a service that does not answer makes it unready, and is named', async () => {
  await using api = await serveApi(clone, objects, { check: () => Promise.reject(new Error('no answer')) });
  expect(await api.ask('GET', '/health/ready', { as: null })).toMatchObject({
    status: 503,
    body: { status: 'unready', checks: { postgresql: 'ok', temporal: 'no answer', s3: 'ok' } },
  });
});

test('a token is kept as its hash, is shown once, and has no power once it is revoked', async () => {
  await using api = await serveApi(clone, objects);
  const made = await api.ask('POST', '/v1/tokens', { body: { name: 'another', role: 'viewer' } });
  expect(made).toMatchObject({ status: 201, body: { name: 'another', role: 'viewer' } });
  const secret: string = made.body.token;
  const [row] = await clone.database.rows<{ row: string }>(
    query`select t::text as row from sonar.token t where name = 'another'`,
  );
  expect(row?.row).toContain(createHash('sha256').update(secret).digest('hex'));
  expect(row?.row).not.toContain(secret);
  await clone.database.execute(query`update sonar.token set revoked_at = now() where name = 'another'`);
  expect(
    await api.request({ method: 'GET', url: '/v1/scans', headers: { authorization: `Bearer ${secret}` } }),
  ).toMatchObject({ status: 401 });
  expect(await api.ask('POST', '/v1/tokens', { body: { name: 'another', role: 'viewer' } })).toMatchObject({
    status: 409,
    body: { code: 'conflict' },
  });
});

test('a worker token binds the name and the tags of its workers', async () => {
  await using api = await serveApi(clone, objects);
  const made = await api.ask('POST', '/v1/tokens', {
    body: { name: 'bound', role: 'worker', tags: ['nmap'], namePrefix: 'scan-' },
  });
  const register = (name: string, tags: string[]) =>
    api.request({
      method: 'POST',
      url: '/v1/workers',
      headers: { authorization: `Bearer ${made.body.token}` },
      payload: { v: 1, name, incarnationId: newId(), location: '', image: '', tags, slots: 1 },
    });
  expect(await register('scan-1', ['nmap'])).toMatchObject({
    status: 200,
    body: { secret: expect.any(String) },
  });
  expect(await register('other-1', ['nmap'])).toMatchObject({ status: 403, body: { code: 'forbidden' } });
  expect(await register('scan-1', ['nmap', 'web'])).toMatchObject({
    status: 403,
    body: { detail: 'token "bound" does not cover tag "web"; it covers nmap' },
  });
});

test('openapi.json lists every route but itself', async () => {
  await using api = await serveApi(clone, objects);
  const { body } = await api.ask('GET', '/v1/openapi.json');
  const listed = Object.entries(body.paths as Record<string, object>).flatMap(([path, operations]) =>
    Object.keys(operations).map(
      (method) => `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`,
    ),
  );
  const routes = routesOf(api.app).filter(
    (route) => !route.startsWith('HEAD') && !route.endsWith('openapi.json'),
  );
  expect(listed.toSorted()).toEqual(routes.toSorted());
});
