import { styleText } from 'node:util';
import type { WorkerView } from '#sonar/contracts/scan-api.ts';
import type { ScanStatus, StepState, TaskStatus } from '#sonar/contracts/states.ts';

/** What a word means to the reader; a terminal with colours shows it as one. */
export type Tone = 'good' | 'bad' | 'busy' | 'warning' | 'faint' | 'plain';

const formats = {
  good: 'green',
  bad: 'red',
  busy: 'cyan',
  warning: 'yellow',
  faint: 'dim',
} as const satisfies Partial<Record<Tone, Parameters<typeof styleText>[0]>>;

/** Wraps text, already cut to its width, in the colour of its tone. */
export function paint(text: string, tone: Tone, colour: boolean): string {
  if (!colour || tone === 'plain' || text === '') return text;
  return styleText(formats[tone], text, { validateStream: false });
}

export const scanTones: Record<ScanStatus, Tone> = {
  Running: 'busy',
  Paused: 'warning',
  Cancelling: 'warning',
  Completed: 'good',
  CompletedWithErrors: 'warning',
  Failed: 'bad',
  Cancelled: 'warning',
};

export const taskTones: Record<TaskStatus, Tone> = {
  Pending: 'faint',
  Published: 'faint',
  Running: 'busy',
  Completed: 'good',
  Failed: 'bad',
  Cancelled: 'warning',
};

export const stepTones: Record<StepState, Tone> = { open: 'busy', settled: 'good', blocked: 'bad' };

export const workerTones: Record<WorkerView['state'], Tone> = {
  alive: 'good',
  draining: 'warning',
  absent: 'bad',
  replaced: 'faint',
};
