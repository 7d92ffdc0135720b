// `npm run torture`: scans with known right answers on a whole Sonar whose processes, services and connections are
// killed, stopped and cut by a seeded schedule. Exit 0 only when nothing was lost, doubled, stuck or left behind.
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '#sonar/platform/errors.ts';
import type { DoneFault } from './fault-run.ts';
import { parseOptions, type TortureOptions, usage } from './options.ts';
import type { FindingKind } from './oracle/finding.ts';
import { type TortureResult, torture } from './torture.ts';

const begun = performance.now();
/** With `--json` standard output has the result alone. */
let say = (line: string): void => void process.stdout.write(`${line}\n`);

const stamp = (): string => `${((performance.now() - begun) / 1000).toFixed(0).padStart(5)} s  `;
const faultLine = (fault: DoneFault): string =>
  `${(fault.plannedAtMs / 1000).toFixed(1).padStart(7)} s  ${fault.at}  ${fault.kind}${fault.happened ? '' : ' (nothing to harm)'}: ${fault.detail}`;

function summaryOf({ faults, scans, tasks, findings }: TortureResult): Record<string, unknown> {
  const happened = faults.filter((fault) => fault.happened);
  const kinds: Record<string, number> = {};
  for (const { kind } of happened.toSorted((a, b) => (a.kind < b.kind ? -1 : 1)))
    kinds[kind] = (kinds[kind] ?? 0) + 1;
  const count = (kind: FindingKind): number => findings.filter((finding) => finding.kind === kind).length;
  return {
    faults: happened.length,
    kinds,
    scans,
    tasks,
    lost: count('lost'),
    duplicated: count('duplicated'),
    stuck: count('stuck'),
    leaked: count('leaked'),
  };
}

async function main(options: TortureOptions, signal: AbortSignal): Promise<TortureResult> {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'sonar-torture-')));
  const faults: DoneFault[] = [];
  let right = false;
  say(`seed ${options.seed}, in ${directory}`);
  try {
    const result = await torture({
      options,
      directory,
      signal,
      say: (line) => say(stamp() + line),
      onFault: (fault) => {
        faults.push(fault);
        say(`${stamp()}${fault.kind}${fault.happened ? '' : ' (nothing to harm)'}: ${fault.detail}`);
      },
    });
    right = result.findings.length === 0;
    for (const { kind, what } of result.findings) say(`${kind.padEnd(10)}  ${what}`);
    return result;
  } finally {
    if (!right) {
      say(`\nschedule of seed ${options.seed} with --minutes ${options.minutes} --scans ${options.scans}:`);
      for (const fault of faults) say(faultLine(fault));
    }
    if (right && !options.keep) rmSync(directory, { recursive: true, force: true });
    else say(`logs, data and ledger are kept in ${directory}`);
  }
}

const interruption = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => interruption.abort(new Error(`interrupted by ${signal}`)));
let options: TortureOptions;
try {
  options = parseOptions(process.argv.slice(2), Date.now());
} catch (error) {
  process.stderr.write(`torture: ${messageOf(error)}\n${usage}\n`);
  process.exit(2);
}
if (process.platform !== 'linux') {
  process.stderr.write('torture: it looks for processes in /proc, so it runs on Linux only\n');
  process.exit(2);
}
if (options.json) say = (line) => void process.stderr.write(`${line}\n`);
try {
  const result = await main(options, interruption.signal);
  const summary = summaryOf(result);
  if (options.json)
    process.stdout.write(`${JSON.stringify(summary)}
`);
  else for (const [name, value] of Object.entries(summary)) say(`${name.padEnd(12)}${JSON.stringify(value)}`);
  process.exitCode = result.findings.length === 0 ? 0 : 1;
} catch (error) {
  process.stderr.write(`torture: ${messageOf(error)}\n`);
  process.exitCode = 1;
}
