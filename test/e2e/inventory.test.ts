// What scans have found, by the command line and real processes: compared, exported, brought in.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SonarProcesses } from './sonar-processes.ts';

let sonar: SonarProcesses;
beforeAll(async () => {
  sonar = await SonarProcesses.prepare();
  await sonar.serve('all');
  await sonar.worker('finder', { slots: 2 });
});
afterAll(() => sonar?.stop());

const said = async (...words: string[]): Promise<string> => {
  const { code, stdout, stderr } = await sonar.cli(words);
  if (code !== 0) throw new Error(`sonar ${words.join(' ')} exited with ${code}: ${stderr}`);
  return stdout;
};
const lines = (text: string): unknown[] =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);

/** A scan of one step that shows these rows. */
async function scanShowing(rows: readonly object[]): Promise<string> {
  writeFileSync(join(sonar.directory, 'rows.jsonl'), rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  writeFileSync(
    join(sonar.directory, 'found.yaml'),
    `
sonar: 1
name: found
steps:
  show:
    tags: [${sonar.tag}]
    command: [cat, ${join(sonar.directory, 'rows.jsonl')}]
    outputs: {rows: {stdout: true, read: {format: jsonl, record: endpoint, fields: {url: url, title: title}}}}
`,
  );
  await said('definition', 'apply', 'found.yaml');
  await said('scan', 'start', 'found', '--allow', '127.0.0.0/8', '--wait');
  return (JSON.parse(await said('--json', 'scan', 'show', 'latest')) as { id: string }).id;
}

const page = (name: string, title: string) => ({ url: `http://127.0.0.1/${name}`, title });

test('the later of two scans is compared with the earlier, and what was found goes out whole and defused', async () => {
  const from = await scanShowing([page('kept', 'same'), page('left', 'old'), page('moved', 'before')]);
  const to = await scanShowing([page('kept', 'same'), page('moved', 'after'), page('new', '=1+1')]);
  expect(lines(await said('inventory', 'diff', from, to, '--all'))).toMatchObject([
    { key: 'http://127.0.0.1/left', change: 'gone' },
    {
      key: 'http://127.0.0.1/moved',
      change: 'changed',
      fields: [{ name: 'title', before: 'before', after: 'after' }],
    },
    { key: 'http://127.0.0.1/new', change: 'added' },
  ]);
  expect(await said('inventory', 'diff', '--definition', 'found')).toMatch(
    /gone +endpoint +\S+left[^]*changed +endpoint +\S+moved +title: before → after[^]*added +endpoint +\S+new/,
  );
  const exported = lines(await said('inventory', 'export', '--type', 'endpoint'));
  expect(exported).toMatchObject(
    ['kept', 'left', 'moved', 'new'].map((name) => ({ type: 'endpoint', key: `http://127.0.0.1/${name}` })),
  );
  await said('scan', 'export', to, '--format', 'csv', '--type', 'endpoint', '-o', 'found.csv');
  const table = readFileSync(join(sonar.directory, 'found.csv'), 'utf8');
  expect(table.trim().split(/\r?\n/)).toHaveLength(4);
  expect(table).toContain(`'=1+1`);
});

test('a list that is brought in becomes records once, and stands beside what scans have found', async () => {
  writeFileSync(join(sonar.directory, 'assets.txt'), 'www.example.com\n127.0.0.9\n-oX\n');
  const first = await said('inventory', 'import', 'assets.txt', '--as', 'lines', '--type', 'host');
  expect(first).toMatch(/2 records/);
  await said('inventory', 'import', 'assets.txt', '--as', 'lines', '--type', 'host');
  const exported = lines(await said('inventory', 'export', '--type', 'domain'));
  expect(exported).toMatchObject([{ type: 'domain', key: 'www.example.com' }]);
  expect(lines(await said('inventory', 'export', '--type', 'address'))).toMatchObject([{ key: '127.0.0.9' }]);
});
