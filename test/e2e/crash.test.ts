// SIGKILL of the control plane in the middle of a scan: nothing lost, no effect twice.
import { once } from 'node:events';
import { SonarProcesses, until } from './sonar-processes.ts';

let sonar: SonarProcesses;
beforeAll(async () => {
  sonar = await SonarProcesses.prepare();
});
afterAll(() => sonar?.stop());

// Claims of a killed process are waited out; short leases make that seconds.
const settings = {
  SONAR_PLACEMENT_LEASE_MS: '1000',
  SONAR_OUTBOX_LEASE_MS: '1000',
  SONAR_FINALIZATION_LEASE_MS: '2000',
  SONAR_SILENT_SCAN_MS: '5000',
};

test('all roles are killed twice while a scan runs; every item has one result and one observation', async () => {
  let roles = await sonar.serve('all', settings);
  await sonar.worker('steady', { slots: 4 });
  const items = Array.from({ length: 60 }, (_, index) => `127.0.1.${index}`);
  const id = await sonar.start(
    `
sonar: 1
name: crash
inputs: {hosts: {type: hosts, required: true}}
steps:
  probe:
    tags: [${sonar.tag}]
    foreach: {in: inputs.hosts}
    target: "\${item}"
    command: [node, -e, "setTimeout(() => console.log(JSON.stringify({ip: process.argv[1]})), 50)", "\${item}"]
    outputs: {rows: {stdout: true, read: {format: jsonl, record: address, fields: {ip: ip}}}}
`,
    { hosts: items },
  );
  for (const share of [10, 30]) {
    await until(`${share} tasks are done`, async () => {
      const detail = await sonar.client.scan(id);
      return (detail.steps[0]?.counts.completed ?? 0) >= share;
    });
    roles.child.kill('SIGKILL');
    await once(roles.child, 'exit');
    roles = await sonar.serve('all', settings);
  }
  const detail = await sonar.ended(id);
  expect(detail.status).toBe('Completed');
  expect(detail.steps[0]?.counts.completed).toBe(items.length);
  const inventory = await Array.fromAsync(sonar.client.inventory.each({ scan: id }));
  expect(inventory.map((record) => record.key).toSorted()).toEqual(items.toSorted());
  const { database } = sonar.clone;
  const rows = async (text: string) =>
    (await database.rows<{ n: number }>({ name: text.slice(0, 40), text, values: [] }))[0]?.n;
  expect(await rows('select count(*) as n from sonar.observation')).toBe(items.length);
  expect(await rows('select count(*) as n from sonar.outbox_delivery_queue')).toBe(0);
  expect(await rows("select count(*) as n from sonar.finalization where status <> 'done'")).toBe(0);
  expect(await rows('select count(*) as n from sonar.attempt where ended_at is null')).toBe(0);
});
