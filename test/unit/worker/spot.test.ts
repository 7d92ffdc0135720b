import { createDrainBound, drainOfWarning } from '#sonar/worker/drain-bound.ts';
import { type SpotMode, spotEndpoint } from '#sonar/worker/spot-host.ts';

function unasked(): boolean {
  throw new Error('the firmware is not asked');
}
const address = 'http://127.0.0.1:1338';

test.each<[string, SpotMode, NodeJS.ProcessEnv, () => boolean, string | null]>([
  ['off, whatever is named', 'off', { AWS_EC2_METADATA_SERVICE_ENDPOINT: address }, unasked, null],
  ['auto on a machine that is not EC2', 'auto', {}, () => false, null],
  ['auto on EC2', 'auto', {}, () => true, 'http://169.254.169.254'],
  [
    'auto with a named service',
    'auto',
    { AWS_EC2_METADATA_SERVICE_ENDPOINT: `${address}/` },
    unasked,
    address,
  ],
  [
    'auto where AWS is told not to ask',
    'auto',
    { AWS_EC2_METADATA_DISABLED: 'true', AWS_EC2_METADATA_SERVICE_ENDPOINT: address },
    unasked,
    null,
  ],
  ['on, whatever the machine is', 'on', {}, unasked, 'http://169.254.169.254'],
  ['on by IPv6', 'on', { AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE: 'IPv6' }, unasked, 'http://[fd00:ec2::254]'],
])('whom to ask about the machine: %s', (_, mode, environment, onEc2, expected) => {
  expect(spotEndpoint(mode, environment, onEc2)).toBe(expected);
});

test.each(['nonsense', 'ftp://127.0.0.1'])('an endpoint that is no address is named: %s', (endpoint) => {
  expect(() => spotEndpoint('auto', { AWS_EC2_METADATA_SERVICE_ENDPOINT: endpoint })).toThrow(
    /AWS_EC2_METADATA_SERVICE_ENDPOINT .* --spot off/,
  );
});

const now = Date.parse('2030-01-01T00:00:00Z');
const interruption = (at: number | null, action = 'terminate') =>
  drainOfWarning({ kind: 'interruption', action, at: at === null ? null : now + at }, 10_000, now);

test('an interruption leaves the time until it, less the grace and what a release takes', () => {
  expect(interruption(120_000)).toEqual({ reason: 'spot', forMs: 100_000, graceMs: 10_000 });
  expect(interruption(15_000)).toEqual({ reason: 'spot', forMs: 0, graceMs: 5_000 });
});

test.each([
  ['a time that is past', interruption(-5_000), 0],
  ['a time that has almost come', interruption(9_000), 0],
  ['hibernation, which has begun', interruption(120_000, 'hibernate'), 0],
  ['a time that cannot be read', interruption(null), 100_000],
  ['a time that EC2 never gives', interruption(86_400_000), 100_000],
])('%s', (_, end, forMs) => {
  expect(end.forMs).toBe(forMs);
});

test('of several reasons to go the earliest bound counts', async () => {
  const over = (bound: ReturnType<typeof createDrainBound>) =>
    new Promise<void>((resolve) => bound.signal.addEventListener('abort', () => resolve(), { once: true }));
  const recommended = drainOfWarning({ kind: 'rebalance' }, 10_000, now);
  const bound = createDrainBound(recommended);
  bound.tighten({ reason: 'shutdown', forMs: 60_000, graceMs: 1 });
  expect(bound.end.reason).toBe('shutdown');
  bound.tighten({ reason: 'max_lifetime', forMs: 90_000, graceMs: 2 });
  expect(bound.end).toMatchObject({ reason: 'shutdown', graceMs: 1 });
  expect(bound.signal.aborted).toBe(false);
  const ended = over(bound);
  bound.tighten({ reason: 'spot', forMs: 0, graceMs: 3 });
  await ended;
  expect(bound.end).toMatchObject({ reason: 'spot', graceMs: 3 });
  bound.clear();
});
