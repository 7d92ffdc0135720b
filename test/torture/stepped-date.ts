// Loaded before a process of Sonar: its clock is off by what a file says, and steps when the file changes. The
// monotonic clock stays, as it does when somebody sets a machine's clock.
import { readFileSync } from 'node:fs';
import { clockVariable } from './clock-file.ts';

const lookEveryMs = 200;
const file = process.env[clockVariable] ?? '';
const RealDate = Date;
let offsetMs = 0;

function look(): void {
  try {
    offsetMs = Number(readFileSync(file, 'utf8')) || 0;
  } catch {
    // None was written yet.
  }
}

class SteppedDate extends RealDate {
  constructor(...given: [] | [string | number | Date]) {
    super(...((given.length === 0 ? [RealDate.now() + offsetMs] : given) as [number]));
  }
  static override now(): number {
    return RealDate.now() + offsetMs;
  }
}

look();
setInterval(look, lookEveryMs).unref();
globalThis.Date = SteppedDate as DateConstructor;
