// Connections that are cut, refused, held or slow; answers and callbacks that a network repeats, reorders or loses.
import { pause } from '#sonar/platform/wait.ts';
import type { CallbackRelay, Tampering } from '../callback-relay.ts';
import type { Link } from '../link.ts';
import { type Member, type ServiceName, uptimeSeconds } from '../members.ts';
import { chosen } from '../schedule.ts';
import { type Fault, type FaultContext, lasting } from './fault-context.ts';

const targets = ['postgres', 'rabbitmq', 's3', 'temporal', 'api'] as const;
type Target = ServiceName | 'api';

const linksTo = ({ system }: FaultContext, target: Target): (Link | CallbackRelay)[] =>
  system.members.flatMap((member) => linkOf(member, target) ?? []);

const linkOf = ({ links, relay }: Member, target: Target): Link | CallbackRelay | undefined =>
  target === 'api' ? relay : links[target];

/** All connections of everybody to one service, at one moment. */
export const cutService: Fault = async (context, planned) => {
  const target = chosen(targets, planned.target);
  const links = linksTo(context, target);
  for (const link of links) link.cut();
  return `${target}, ${links.length} links`;
};

/** All connections of one process. */
export const cutMember: Fault = async ({ system }, planned) => {
  const member = chosen(system.members, planned.target);
  for (const link of linksOf(member)) link.cut();
  return member.name;
};

/** One process cannot reach one service, or nothing at all, while all others do. */
export const partMember: Fault = (context, planned) =>
  disturbed(context, planned.target, planned.part, lasting(planned, 1_000, 14_000), (link) => link.part());

/** Nothing passes, and nobody says so: the connections stay. */
export const holdMember: Fault = (context, planned) =>
  disturbed(context, planned.target, planned.part, lasting(planned, 1_000, 10_000), (link) => link.hold());

async function disturbed(
  context: FaultContext,
  target: number,
  part: number,
  ms: number,
  disturb: (link: Link | CallbackRelay) => void,
): Promise<string> {
  const member = chosen(context.system.members, target);
  const all = linksOf(member);
  const links = part < 0.3 ? all : [chosen(all, (part - 0.3) / 0.7)];
  const disturbance =
    member.kind === 'worker'
      ? context.disturbances.begin(member.name, 'cut off', uptimeSeconds())
      : undefined;
  for (const link of links) disturb(link);
  await pause(ms, context.signal);
  for (const link of links) link.heal();
  if (disturbance) disturbance.until = uptimeSeconds() + healedWithinSeconds;
  return `${links.map(({ name }) => name).join(', ')}, ${ms} ms`;
}

/** Until a worker that was cut off has pulsed again. */
const healedWithinSeconds = 3;

export const slowService: Fault = async (context, planned) => {
  const target = chosen(targets, planned.target);
  const links = linksTo(context, target);
  const delayMs = 10 + Math.round(planned.part * 190);
  const ms = lasting(planned, 3_000, 12_000);
  for (const link of links) link.slow(delayMs);
  await pause(ms, context.signal);
  for (const link of links) link.slow(0);
  return `${target}, ${delayMs} ms a piece, ${ms} ms`;
};

/** Of all workers, for a while. */
export const tampering =
  (how: Tampering): Fault =>
  async ({ system, signal }, planned) => {
    const relays = system.members.flatMap(({ relay }) => relay ?? []);
    const ms = lasting(planned, 3_000, 10_000);
    for (const relay of relays) relay.tamper(how);
    await pause(ms, signal);
    for (const relay of relays) relay.tamper('none');
    return `${ms} ms`;
  };

const linksOf = ({ links, relay }: Member): (Link | CallbackRelay)[] => [
  ...Object.values(links),
  ...(relay ? [relay] : []),
];
