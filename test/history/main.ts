// `npm run test:history`: history follows ticks, never tasks. 2,000 tasks of `true` in one scan on 16 slots must end
// Completed with fewer than 4,096 events summed over the whole chain of its workflow runs.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { elapsedMs } from '#sonar/cli/follow-scan.ts';
import { watchScan } from '#sonar/cli/watch-scan.ts';
import type { ScanDetail } from '#sonar/contracts/scan-api.ts';
import { messageOf } from '#sonar/platform/errors.ts';
import { startLocalSonar } from '../../demo/local-sonar.ts';
import { historyChain } from './history-chain.ts';

const { values: options } = parseArgs({
  options: {
    tasks: { type: 'string', default: '2000' },
    slots: { type: 'string', default: '16' },
    events: { type: 'string', default: '4096' },
  },
});
const tasks = Number(options.tasks);
const maxEvents = Number(options.events);
const limitMs = 600_000;

const definition = `
sonar: 1
name: history
inputs: {lines: {type: lines, required: true}}
steps:
  one:
    tags: [history]
    foreach: {in: inputs.lines}
    command: ["true"]
`;

async function main(signal: AbortSignal): Promise<boolean> {
  const directory = mkdtempSync(join(tmpdir(), 'sonar-history-'));
  const local = await startLocalSonar({
    dataDir: directory,
    temporalUi: false,
    workers: [{ name: 'history', tags: 'history', slots: options.slots }],
    signal,
    say: (line) => process.stderr.write(`${line}\n`),
  });
  try {
    await local.client.applyDefinition(definition);
    const started = await local.client.startScan({
      definition: 'history',
      inputs: { lines: Array.from({ length: tasks }, (_, index) => String(index)) },
      scope: { allow: ['127.0.0.0/8'], deny: [] },
    });
    let detail: ScanDetail | undefined;
    for await (const event of watchScan(local.client, started.id, { reached: true, signal })) {
      if (event.kind !== 'seen') continue;
      detail = event.detail;
      process.stderr.write(`${detail.status}: ${detail.steps[0]?.counts.completed ?? 0} of ${tasks}\n`);
    }
    const { runs, events } = await historyChain(local.stack.env, started.id);
    const completed = detail?.steps[0]?.counts.completed ?? 0;
    const right = detail?.status === 'Completed' && completed === tasks && events < maxEvents;
    const seconds = detail ? Math.round(elapsedMs(detail, Date.now()) / 100) / 10 : null;
    process.stdout.write(
      `${JSON.stringify({ status: detail?.status, tasks: completed, runs, events, maxEvents, seconds, right })}\n`,
    );
    return right;
  } finally {
    await local.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

const interruption = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => interruption.abort(new Error(`interrupted by ${signal}`)));
try {
  const right = await main(AbortSignal.any([interruption.signal, AbortSignal.timeout(limitMs)]));
  process.exitCode = right ? 0 : 1;
} catch (error) {
  process.stderr.write(`test:history: ${messageOf(error)}\n`);
  process.exitCode = 1;
}
