// `npm run bench:drain -- --tasks N`: N tasks of `true` go all the way to Completed, by roles and workers in processes
// of their own. Says tasks a second, the events of the scan's workflow, and what each process held and computed.
import { parseArgs } from 'node:util';
import { watchScan } from '#sonar/cli/watch-scan.ts';
import type { ScanDetail } from '#sonar/contracts/scan-api.ts';
import { historyChain } from '../test/history/history-chain.ts';
import { startMeasuredSonar } from './measured-sonar.ts';
import { countOf, runBench } from './run-bench.ts';

const { values } = parseArgs({
  options: {
    tasks: { type: 'string', default: '5000' },
    workers: { type: 'string', default: '2' },
    slots: { type: 'string', default: '16' },
  },
});
const tasks = countOf(values, 'tasks');
const workers = countOf(values, 'workers');
const slots = countOf(values, 'slots');
const limitMs = 3_600_000;

const definition = `
sonar: 1
name: drain
inputs: {lines: {type: lines, required: true}}
steps:
  one:
    tags: [bench]
    foreach: {in: inputs.lines}
    command: ["true"]
`;

async function drain(directory: string, signal: AbortSignal) {
  const sonar = await startMeasuredSonar({
    dataDir: directory,
    roles: ['api', 'reconciler', 'finalizer', 'publisher'],
    workers: Array.from({ length: workers }, (_, n) => ({ name: `worker-${n}`, tags: 'bench', slots })),
    signal,
  });
  try {
    await sonar.client.applyDefinition(definition);
    const since = performance.now();
    const started = await sonar.client.startScan({
      definition: 'drain',
      inputs: { lines: Array.from({ length: tasks }, (_, index) => String(index)) },
      scope: { allow: ['127.0.0.0/8'], deny: [] },
    });
    let detail: ScanDetail | undefined;
    for await (const event of watchScan(sonar.client, started.id, { reached: true, signal })) {
      if (event.kind !== 'seen') continue;
      detail = event.detail;
      const { completed = 0, published = 0, running = 0 } = detail.steps[0]?.counts ?? {};
      process.stderr.write(`${completed} of ${tasks}; ${published} published, ${running} running\n`);
    }
    // A watch that is interrupted ends without a fault.
    signal.throwIfAborted();
    const seconds = Math.round((performance.now() - since) / 100) / 10;
    const completed = detail?.steps[0]?.counts.completed ?? 0;
    return {
      right: detail?.status === 'Completed' && completed === tasks,
      figures: {
        status: detail?.status,
        tasks: completed,
        workers,
        slots,
        seconds,
        tasksPerSecond: Math.round(completed / seconds),
        history: await historyChain(sonar.stack.env, started.id),
        usage: sonar.usage(),
      },
    };
  } finally {
    await sonar.stack.stop();
  }
}

await runBench('drain', limitMs, drain);
