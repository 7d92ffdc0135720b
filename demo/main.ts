// `npm run demo`: the whole of Sonar on this machine, one survey of a few local servers, the inventory, the end.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { ApiClient } from '#sonar/cli/api-client.ts';
import { elapsedMs, followScan, lastSeen, summaryOf } from '#sonar/cli/follow-scan.ts';
import { renderTable } from '#sonar/cli/table.ts';
import { sinkOf, wantsColour, widthOf } from '#sonar/cli/terminal.ts';
import { watchScan } from '#sonar/cli/watch-scan.ts';
import type { InventoryItem } from '#sonar/contracts/inventory-api.ts';
import type { ScanDetail } from '#sonar/contracts/scan-api.ts';
import { messageOf } from '#sonar/platform/errors.ts';
import { inventoryDifferences } from './compare-inventory.ts';
import { checkout, startLocalSonar } from './local-sonar.ts';
import { startTargetServers, type TargetServers } from './target-servers.ts';

const workers = [
  { name: 'demo-ports', tags: 'nmap', slots: '4' },
  { name: 'demo-web', tags: 'web,report', slots: '4' },
];

const { values: options } = parseArgs({
  options: {
    keep: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    data: { type: 'string', default: join(checkout, '.sonar', 'demo') },
  },
});
// With --json stdout belongs to the one line at the end.
const out = sinkOf(options.json ? process.stderr : process.stdout);
const say = (line: string): void => out.write(`${line}\n`);

const interruption = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => interruption.abort(new Error(`interrupted by ${signal}`)));

async function main(signal: AbortSignal): Promise<void> {
  const startedAt = performance.now();
  say('Services: real PostgreSQL, RabbitMQ, Temporal and S3 on loopback');
  const local = await startLocalSonar({
    dataDir: options.data,
    workers,
    // The bundled probe is a command like any other: the workers find it on their PATH.
    workerPath: `${join(checkout, 'catalog', 'bin')}:${process.env.SONAR_DEMO_WORKER_PATH ?? process.env.PATH ?? ''}`,
    signal,
    say,
  });
  const { client, apiUrl, stack } = local;
  let servers: TargetServers | undefined;
  let summary: string | undefined;
  try {
    servers = await startTargetServers();
    const detail = await survey(client, servers, signal);
    const items = await inventoryOf(client, detail);
    showInventory(items);
    const differences = inventoryDifferences(servers, items);
    say('');
    for (const line of differences) say(`WRONG        ${line}`);
    if (differences.length === 0)
      say('Checked      the inventory is what the servers offer: nothing missing, nothing else');
    say(`Scan         ${summaryOf(detail, Date.now())}`);
    say(`API          ${apiUrl}`);
    say(`Temporal UI  ${stack.temporalUiUrl ?? 'not started'} (workflow ${detail.temporalWorkflowId})`);
    if (options.keep) await keep(signal);
    summary = summarize(detail, items, (performance.now() - startedAt) / 1000);
    process.exitCode = detail.status === 'Completed' && differences.length === 0 ? 0 : 3;
  } finally {
    await servers?.close();
    await local.stop();
    say('everything is stopped; the data stays in .sonar/demo');
  }
  // Last, so that it is the last line whichever streams are read together.
  if (options.json) process.stdout.write(`${summary}\n`);
}

async function survey(client: ApiClient, servers: TargetServers, signal: AbortSignal): Promise<ScanDetail> {
  const source = readFileSync(join(checkout, 'catalog', 'loopback-survey.yaml'), 'utf8');
  const definition = await client.applyDefinition(source);
  say(`\nDefinition ${definition.name}, revision ${definition.revision}: ${definition.steps.join(' → ')}`);
  const scan = await client.startScan({
    definition: definition.name,
    name: 'demo',
    inputs: { targets: servers.addresses, ports: servers.services.map((service) => service.port).join(',') },
    scope: { allow: ['127.0.0.0/8'], deny: [] },
  });
  const events = watchScan(client, scan.id, { reached: true, pollMs: 500, signal });
  const last = options.json
    ? await lastSeen(events)
    : await followScan(events, out, { environment: process.env });
  signal.throwIfAborted();
  if (!last) throw new Error(`scan ${scan.id} was not seen`);
  return last;
}

async function inventoryOf(client: ApiClient, detail: ScanDetail): Promise<InventoryItem[]> {
  return Array.fromAsync(client.inventory.each({ scan: detail.id }));
}

function showInventory(items: readonly InventoryItem[]): void {
  say('\nInventory');
  const columns = [
    { title: 'TYPE', cell: (item: InventoryItem) => item.type },
    { title: 'KEY', cell: (item: InventoryItem) => item.key },
    { title: 'STATUS', cell: (item: InventoryItem) => textOf(item.fields.status ?? item.fields.state) },
    { title: 'TITLE', cell: (item: InventoryItem) => textOf(item.fields.title), shrinkTo: 10 },
    { title: 'CERTIFICATE', cell: (item: InventoryItem) => textOf(item.fields.tlsSubject), shrinkTo: 10 },
  ];
  for (const line of renderTable(columns, items, {
    width: widthOf(out),
    colour: wantsColour(out, process.env),
  }))
    say(line);
}

const textOf = (value: unknown): string | null =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : null;

function keep(signal: AbortSignal): Promise<void> {
  say('\nKept up: look at the Temporal UI, then end it with Ctrl-C.');
  return new Promise((resolve) => {
    const alive = setInterval(() => undefined, 60_000);
    signal.addEventListener('abort', () => {
      clearInterval(alive);
      resolve();
    });
  });
}

/** The one line of `--json`. */
function summarize(detail: ScanDetail, items: readonly InventoryItem[], seconds: number): string {
  const sum = (count: (counts: ScanDetail['steps'][number]['counts']) => number): number =>
    detail.steps.reduce((total, step) => total + count(step.counts), 0);
  const inventory: Record<string, number> = {};
  for (const item of items) inventory[item.type] = (inventory[item.type] ?? 0) + 1;
  return JSON.stringify({
    scan: { status: detail.status, id: detail.id, seconds: elapsedMs(detail, Date.now()) / 1000 },
    tasks: {
      completed: sum((counts) => counts.completed),
      failed: sum((counts) => counts.failed),
      cancelled: sum((counts) => counts.cancelled),
      noWork: sum((counts) => counts.noWork),
    },
    inventory,
    seconds: Math.round(seconds * 10) / 10,
  });
}

try {
  await main(interruption.signal);
} catch (error) {
  process.stderr.write(`demo: ${messageOf(error)}\n`);
  process.exitCode = interruption.signal.aborted ? 130 : 1;
}
