// Reading every result of a finished scan again leaves the inventory, and all that it is made of, byte for byte equal.
import type { ScanRow } from '#sonar/stores/scans.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { openLaboratory } from '../fixtures/laboratory.ts';
import { useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();

const source = `sonar: 1
name: replayed
inputs: {lines: {type: lines, default: "a\\nb\\nc\\nd\\ne\\nf"}}
records: {login: {key: [host, form], normalize: {host: host}}}
steps:
  web:
    tags: [t]
    foreach: {in: inputs.lines}
    command: [tool, "\${item}"]
    outputs:
      httpx: {path: httpx.jsonl, read: httpx, optional: true}
      ports: {path: ports.jsonl, read: naabu, optional: true}
      names: {path: names.txt, read: {format: lines, record: domain}, optional: true}
      forms: {path: forms.jsonl, read: {format: jsonl, record: login, fields: {host: h, form: f}}, optional: true}`;

const json = (...rows: unknown[]): string => rows.map((row) => JSON.stringify(row)).join('\n');
const results: { outputs: Record<string, Record<string, string>>; failed?: true }[] = [
  {
    outputs: {
      httpx: {
        'httpx.jsonl': json(
          {
            url: 'https://a.example.com:443/',
            title: 'one\u0000\u202e',
            tech: ['nginx:1.2', 'php'],
            status_code: 200,
          },
          { url: 'https://a.example.com/', title: '=cmd|x', webserver: 'nginx', host_ip: '10.0.0.1' },
        ),
      },
      ports: { 'ports.jsonl': json({ host: 'a.example.com', ip: '10.0.0.1', port: 443 }) },
    },
  },
  { outputs: { names: { 'names.txt': 'A.example.com\n-bad-\nb.example.com.\n' } } },
  { outputs: { names: { 'names.txt': 'late.example.com\na.example.com\n' } }, failed: true },
  { outputs: { names: { 'names.txt': '-nothing-\n-good-\n' } } },
  {
    outputs: {
      forms: {
        'forms.jsonl': json({ h: 'A.example.com', f: '/in' }, { h: 'a.example.com', f: '/in', x: '\ud800' }),
      },
    },
  },
  { outputs: { ports: { 'ports.jsonl': json({ host: 'a.example.com', ip: '10.0.0.1', port: 80 }) } } },
];

async function dump(scan: ScanRow): Promise<string> {
  const tables = {
    inventory: query`select * from sonar.inventory order by workspace_id, type, key`,
    sources: query`select * from sonar.source_record order by source_id, type, key`,
    counts: query`select * from sonar.source_count order by source_id, type`,
    observations: query`select * from sonar.observation order by attempt_id, output, file, row, part`,
    tasks: query`select task_id, status, finalized, failure_code from sonar.task where scan_id = ${scan.scan_id} order by 1`,
    read: query`select finalization_id, status, records, bad_records, warnings from sonar.finalization order by 1`,
  };
  const rows: unknown[] = [];
  for (const [name, text] of Object.entries(tables)) rows.push([name, await clone.database.rows(text)]);
  return JSON.stringify(rows, null, 1);
}

test('replaying every finalization of a finished scan, whole, partial and poisoned ones, leaves the same bytes', async () => {
  const lab = openLaboratory(clone, objects, { SONAR_FINALIZATION_ATTEMPTS: 1 });
  const worker = await lab.worker();
  const scan = await lab.scan(source);
  await lab.plan(scan);
  await lab.place();
  for (const [index, attempt] of (await lab.published(scan)).entries()) {
    const { outputs, failed } = results[index] ?? { outputs: {} };
    await lab.run(attempt, worker, outputs, failed ? { outcome: 'failed', exitCode: 3 } : {});
  }
  while (await lab.finalize());
  await lab.plan(scan);
  await lab.settle(scan);
  const before = await dump(scan);
  expect(
    await clone.database.rows(
      query`select status, count(*)::integer as n from sonar.finalization group by status order by status`,
    ),
  ).toEqual([
    { status: 'done', n: 5 },
    { status: 'poisoned', n: 1 },
  ]);
  expect(
    (
      await clone.database.rows<{ key: string }>(
        query`select key from sonar.inventory where (state->>'partial')::boolean order by key`,
      )
    ).map(({ key }) => key),
  ).toEqual(['late.example.com']);
  await clone.database.execute(query`
    update sonar.finalization
    set status = 'due', finished_at = null, attempts = 0, records = 0, bad_records = 0, warnings = '{}', available_at = now()`);
  while (await lab.finalize());
  expect(await dump(scan)).toBe(before);
});
