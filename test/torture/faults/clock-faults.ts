// Clocks that are set: forwards and backwards, each process by itself.
import { setClock } from '../clock-file.ts';
import { chosen } from '../schedule.ts';
import type { Fault } from './fault-context.ts';

const minuteMs = 60_000;
/** Two apis have to agree to within the signatures' five minutes; everybody else may be off by more than that. */
const mostOff = { api: 2 * minuteMs, other: 12 * minuteMs };

export const stepClock: Fault = async ({ system }, planned) => {
  const member = chosen(system.members, planned.target);
  const most = member.kind === 'api' ? mostOff.api : mostOff.other;
  const offsetMs = Math.round((planned.span * 2 - 1) * most);
  setClock(member.clock, offsetMs);
  return `${member.name}, ${offsetMs} ms off`;
};
