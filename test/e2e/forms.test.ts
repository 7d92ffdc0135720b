// Every way in which a command is given what it works on, on the whole stack: files of the definition, groups, batches,
// merged files, a file of the scan, and a secret from the command line to the command.
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SonarProcesses, until } from './sonar-processes.ts';

let sonar: SonarProcesses;
beforeAll(async () => {
  sonar = await SonarProcesses.prepare();
  await sonar.serve('all');
  await sonar.worker('first', { slots: 2 });
});
afterAll(() => sonar?.stop());

const secret = 'hunter2-of-the-test';

/** Each prints one endpoint whose title says what it was given. */
const scripts = {
  'find.mjs': `for (const port of [80, 443]) console.log(JSON.stringify({ip: '127.0.0.' + process.argv[2].length, port}));
console.log(JSON.stringify({ip: '192.0.2.1', port: 1}));`,
  'deep/say.mjs': `import { readFileSync } from 'node:fs';
const [kind, ...rest] = process.argv.slice(2);
const read = (path) => path.startsWith('/') ? readFileSync(path, 'utf8').trim().split('\\n').join(' ') : path;
const stdin = kind === 'batch' ? readFileSync(0, 'utf8').trim().split('\\n').join(' ') : '';
const title = [...rest.map(read), stdin, process.env.API_KEY === undefined ? '' : String(process.env.API_KEY.length)].filter((text) => text !== '').join(' | ');
console.log(JSON.stringify({url: 'http://127.0.0.1/' + kind + '/' + encodeURIComponent(title), title}));`,
};

const say = `outputs: {said: {stdout: true, read: {format: jsonl, record: endpoint, fields: {url: url, title: title}}}}`;
const definition = (tag: string): string => `
sonar: 1
name: forms
inputs: {names: {type: lines, required: true}, words: {type: file, required: true}}
files: {tools: ./tools}
steps:
  find:
    tags: [${tag}]
    foreach: {in: inputs.names, unique: true}
    command: [node, "\${file.tools}/find.mjs", "\${item}"]
    outputs: {rows: {stdout: true, read: jsonl}}
  group:
    tags: [${tag}]
    needs: {find: all}
    foreach: {in: find.rows, group: ip}
    target: \${item.ip}
    command: [node, "\${file.tools}/deep/say.mjs", group, "\${item.ip}", "\${join(item.port)}"]
    ${say}
  batch:
    tags: [${tag}]
    needs: {find: all}
    foreach: {in: find.rows, pick: ip, unique: true, batch: 2}
    target: \${item}
    command: [node, "\${file.tools}/deep/say.mjs", batch, "\${batch}"]
    stdin: \${batch}
    ${say}
  merged:
    tags: [${tag}]
    needs: {find: all}
    inputs: {hosts: {from: find.rows, pick: ip, unique: true}, words: {from: inputs.words}}
    target: \${in.hosts}
    secrets: [api-key]
    command: [node, "\${file.tools}/deep/say.mjs", merged, "\${in.hosts}", "\${in.words}"]
    ${say}
`;

test('from the command line to the commands and back', async () => {
  const folder = join(sonar.directory, 'survey');
  mkdirSync(join(folder, 'tools/deep'), { recursive: true });
  for (const [path, text] of Object.entries(scripts)) writeFileSync(join(folder, 'tools', path), text);
  writeFileSync(join(folder, 'words.bin'), 'w1\nw2\n');
  writeFileSync(join(folder, 'forms.yaml'), definition(sonar.tag));
  expect(await sonar.cli(['definition', 'apply', join(folder, 'forms.yaml')])).toMatchObject({ code: 0 });
  const started = await sonar.cli([
    '--json',
    'scan',
    'start',
    'forms',
    '--allow',
    '127.0.0.0/8',
    '--file',
    `words=${join(folder, 'words.bin')}`,
    ...['aa', 'bbb', 'aa', 'cccc'].flatMap((name) => ['--input', `names=${name}`]),
  ]);
  expect(started).toMatchObject({ code: 0, stderr: '' });
  const { id } = JSON.parse(started.stdout) as { id: string };

  // Without its secret the step waits and says so; nothing fails.
  const waiting = async () =>
    (await sonar.client.scan(id)).steps.find(({ step }) => step === 'merged')?.note ?? '';
  await until('the step waits for its secret', async () => (await waiting()).includes('secret set api-key'));
  expect(await sonar.cli(['secret', 'set', 'api-key'], {}, `${secret}\n`)).toMatchObject({ code: 0 });

  const detail = await sonar.ended(id);
  expect(detail.status).toBe('Completed');
  expect(detail.steps.map(({ step, refused, counts }) => [step, counts.completed, refused])).toEqual([
    ['find', 3, 0],
    ['group', 3, 1],
    // The same host out of scope, once from each of the three outputs.
    ['batch', 2, 3],
    ['merged', 1, 1],
  ]);
  const { items } = await sonar.client.inventory.take({ type: 'endpoint', scan: id }, 100);
  const titles = items.map(({ fields }) => (typeof fields.title === 'string' ? fields.title : ''));
  expect(titles.toSorted((a, b) => (a < b ? -1 : 1))).toEqual([
    '127.0.0.2 127.0.0.3 127.0.0.4 | w1 w2 | 19',
    '127.0.0.2 127.0.0.3 | 127.0.0.2 127.0.0.3',
    '127.0.0.2 | 80,443',
    '127.0.0.3 | 80,443',
    '127.0.0.4 | 127.0.0.4',
    '127.0.0.4 | 80,443',
  ]);
  expect((await sonar.cli(['secret', 'list'])).stdout).toContain('api-key');
  expect(filesHolding(sonar.directory, secret)).toEqual([]);
});

/** Logs of all processes and everything that workers left on their disks. */
function filesHolding(folder: string, text: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((path) => join(folder, path))
    .filter((path) => statSync(path).isFile() && readFileSync(path).includes(text));
}
