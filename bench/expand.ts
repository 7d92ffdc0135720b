// `npm run bench:expand -- --lines N`: a list of N lines becomes as many tasks, by the roles of a real scan that no
// worker serves. Says how long that took, what each role held, what a task costs on disk, and what a tick costs then.
import { spawnSync } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { parseArgs } from 'node:util';
import type { ScanId } from '#sonar/contracts/ids.ts';
import { openDatabase } from '#sonar/db/pool.ts';
import { planScan } from '#sonar/flow/plan-scan.ts';
import { settingsSchema } from '#sonar/platform/config.ts';
import { createLogger } from '#sonar/platform/logger.ts';
import { pause } from '#sonar/platform/wait.ts';
import { keepRevisions } from '#sonar/stores/revisions.ts';
import { startMeasuredSonar } from './measured-sonar.ts';
import { countOf, runBench } from './run-bench.ts';

const { values } = parseArgs({ options: { lines: { type: 'string', default: '100000' } } });
const lines = countOf(values, 'lines');
const limitMs = 1_800_000;
const ticks = 20;

const definition = `
sonar: 1
name: expand
inputs: {hosts: {type: hosts, required: true}}
steps:
  one:
    tags: [nobody]
    foreach: {in: inputs.hosts, unique: true}
    target: \${item}
    command: ["true", "\${item}"]
`;

function* hosts(): Iterable<string> {
  for (let n = 0; n < lines; n += 1) yield `host-${n}.bench.example\n`;
}

async function expand(directory: string, signal: AbortSignal) {
  const list = join(directory, 'hosts.txt');
  await pipeline(Readable.from(hosts()), createWriteStream(list));
  const sonar = await startMeasuredSonar({
    dataDir: join(directory, 'data'),
    roles: ['api', 'reconciler'],
    workers: [],
    settings: { SONAR_SCAN_TASK_CAP: String(Math.max(lines, 1_000_000)) },
    signal,
  });
  const database = openDatabase({
    url: sonar.stack.env.SONAR_DATABASE_URL,
    applicationName: 'sonar bench',
    maxConnections: 2,
  });
  try {
    await sonar.client.applyDefinition(definition);
    const since = performance.now();
    // As people do it: the list goes up by the command line's own upload.
    const words = [
      'scan',
      'start',
      'expand',
      '--input',
      `hosts=@${list}`,
      '--allow',
      'bench.example',
      '--json',
    ];
    const main = join(import.meta.dirname, '..', 'src', 'main.ts');
    const started = spawnSync(process.execPath, ['--disable-warning=ExperimentalWarning', main, ...words], {
      encoding: 'utf8',
      env: { ...process.env, ...sonar.connection },
    });
    if (started.status !== 0) throw new Error(`the scan did not start: ${started.stderr}`);
    const startedSeconds = secondsSince(since);
    const { id } = JSON.parse(started.stdout) as { id: ScanId };
    let made = 0;
    while (made < lines && !signal.aborted) {
      await pause(1_000, signal);
      const [step] = (await sonar.client.scan(id)).steps;
      made = step?.counts.pending ?? 0;
      process.stderr.write(`${made} of ${lines}\n`);
    }
    const expandedSeconds = secondsSince(since) - startedSeconds;
    const [size] = await database.rows<{ bytes: number }>({
      name: '',
      text: `select sum(pg_total_relation_size(c.oid))::bigint as bytes from pg_class c
             where c.relkind = 'r' and c.relnamespace = 'sonar'::regnamespace
               and c.relname in ('task', 'unique_item', 'task_count', 'task_count_delta', 'expansion')`,
      values: [],
    });
    const parts = {
      database,
      revisions: keepRevisions(),
      settings: settingsSchema.parse({}),
      log: createLogger('bench', 'silent'),
    };
    const tickMs: number[] = [];
    for (let tick = 0; tick < ticks; tick += 1) {
      const before = performance.now();
      await planScan(parts, id);
      tickMs.push(performance.now() - before);
    }
    return {
      right: made === lines,
      figures: {
        lines,
        made,
        startSeconds: startedSeconds,
        expandSeconds: expandedSeconds,
        linesPerSecond: Math.round(lines / expandedSeconds),
        bytesPerTask: Math.round((size?.bytes ?? 0) / lines),
        tickMs: {
          median: rounded(tickMs.toSorted((a, b) => a - b)[ticks / 2]),
          max: rounded(Math.max(...tickMs)),
        },
        usage: sonar.usage(),
      },
    };
  } finally {
    await database.close();
    await sonar.stack.stop();
  }
}

const rounded = (value: number | undefined): number => Math.round((value ?? 0) * 10) / 10;
const secondsSince = (since: number): number => rounded((performance.now() - since) / 1000);

await runBench('expand', limitMs, expand);
