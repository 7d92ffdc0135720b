import { mkdtempSync } from 'node:fs';
import { createSpawner } from '#sonar/worker/spawner.ts';
import { createLogger } from '#sonar/platform/logger.ts';
const dir = mkdtempSync('/tmp/zz-');
const ballast = Buffer.alloc(Number(process.argv[2] ?? 0) * 1e6, 1);
const s = createSpawner(dir, createLogger('x', 'silent'));
s.prepare();
const plan = { path: null, capBytes: 1000, headBytes: 100 };
const go = (i: number) => s.run({ id: String(i), argv: ['true'], env: { PATH: process.env.PATH ?? '' }, cwd: dir, stdinPath: null, stdout: plan, stderr: plan, timeoutMs: 10000, graceMs: 100 }, () => {}).ended;
await go(-1);
for (const par of [1, 8, 16]) {
  const n = 1000; let next = 0; const t = performance.now();
  await Promise.all(Array.from({ length: par }, async () => { while (next < n) await go(next++); }));
  console.log('parallel', par, Math.round(n / (performance.now() - t) * 1000), '/s', 'ballast', ballast.length);
}
await s.stop();
