// Files of definitions and scans: known by their hash once they are whole, and fetched by the workers that need them.
import { defaultWorkspace } from '#sonar/contracts/ids.ts';
import type { UploadedFiles } from '#sonar/contracts/scan-api.ts';
import { applyDefinition } from '#sonar/flow/apply-definition.ts';
import { startScan } from '#sonar/flow/start-scan.ts';
import { useClonedDatabase } from '../fixtures/cloned-database.ts';
import { argvOf, dispatchOf, grantedInput } from '../fixtures/granted-inputs.ts';
import { openLaboratory } from '../fixtures/laboratory.ts';
import { sha256, useObjectStore } from '../fixtures/object-store.ts';
import { query } from '../fixtures/query.ts';
import { storeFile } from '../fixtures/stored-file.ts';

const clone = useClonedDatabase();
const objects = useObjectStore();
const parts = () => ({ database: clone.database, objects });

const store = (content: string, sent?: string): Promise<string> => storeFile(parts(), content, sent);

const source = `
sonar: 1
name: with-files
files: {templates: ./nuclei-templates, words: ./words.txt, unused: ./u}
inputs: {list: {type: file, required: true}}
steps:
  find:
    tags: [t]
    inputs: {list: {from: inputs.list}}
    command: [find, -t, "\${file.templates}", -w, "\${file.words}", -l, "\${in.list}"]
`;

const uploaded = async (a = 'A'): Promise<UploadedFiles> => ({
  templates: {
    kind: 'directory',
    entries: [
      { path: 'a.yaml', sha256: await store(a) },
      { path: 'deep/b.yaml', sha256: await store('B') },
    ],
  },
  words: { kind: 'file', entries: [{ path: 'words.txt', sha256: await store('w') }] },
  unused: { kind: 'directory', entries: [] },
});
const apply = (files: UploadedFiles) => applyDefinition(clone.database, defaultWorkspace, source, files);

test('a task gets the files of its revision, and of those only what its command names', async () => {
  const lab = openLaboratory(clone, objects);
  await lab.worker();
  await apply(await uploaded());
  const scope = { allow: ['example.com'] };
  const list = await store('binary \u0001 list\n');
  const { scan } = await startScan(clone.database, defaultWorkspace, {
    definition: 'with-files',
    scope,
    inputs: { list: { sha256: list } },
  });
  const { scan: inline } = await startScan(clone.database, defaultWorkspace, {
    definition: 'with-files',
    scope,
    inputs: { list: 'a\nb' },
  });
  for (const each of [scan, inline]) await lab.plan(each);
  await lab.place();
  const [attempt] = await lab.published(scan);
  expect(await argvOf(lab, attempt!)).toEqual([
    'find',
    '-t',
    '<_file-templates>',
    '-w',
    '<_file-words>',
    '-l',
    '<list>',
  ]);
  const { inputs } = await dispatchOf(lab, attempt!);
  expect(inputs.map(({ name, as }) => `${name} ${as}`)).toEqual([
    'list file',
    '_file-templates directory',
    '_file-words file',
  ]);
  expect(await grantedInput(lab, attempt!, '_file-templates')).toEqual({ 'a.yaml': 'A', 'deep/b.yaml': 'B' });
  expect(await grantedInput(lab, attempt!, '_file-words')).toEqual({ 'words.txt': 'w' });
  expect(await grantedInput(lab, attempt!, 'list')).toEqual({ list: 'binary \u0001 list\n' });
  expect(await grantedInput(lab, attempt!, '_file-other')).toEqual({});
  const [other] = await lab.published(inline);
  expect(await grantedInput(lab, other!, 'list')).toEqual({ list: 'a\nb' });
});

test('a folder of more files than a page holds comes whole', async () => {
  const lab = openLaboratory(clone, objects);
  await lab.worker();
  const digest = await store('same');
  const entries = Array.from({ length: 450 }, (_, index) => ({
    path: `${'long-folder-name/'.repeat(20)}${String(index).padStart(4, '0')}`,
    sha256: digest,
  }));
  const files = { ...(await uploaded()), templates: { kind: 'directory' as const, entries } };
  await apply(files);
  const { scan } = await startScan(clone.database, defaultWorkspace, {
    definition: 'with-files',
    scope: { allow: ['example.com'] },
    inputs: { list: 'x' },
  });
  await lab.plan(scan);
  await lab.place();
  const [attempt] = await lab.published(scan);
  expect(Object.keys(await grantedInput(lab, attempt!, '_file-templates'))).toHaveLength(450);
});

test('the same text with other files is another revision; with the same files it is the same', async () => {
  const first = await apply(await uploaded('one'));
  expect(await apply(await uploaded('one'))).toMatchObject({ revision: first.revision });
  expect(await apply(await uploaded('two'))).toMatchObject({ revision: first.revision + 1 });
});

test('what does not arrive whole is never stored, and can be uploaded again', async () => {
  await expect(store('right', 'wrong')).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringContaining('did not arrive whole'),
  });
  const digest = sha256('right');
  expect(
    await clone.database.rows(query`select 1 as one from sonar.stored_file where sha256 = ${digest}`),
  ).toEqual([]);
  expect(await store('right')).toBe(digest);
});

test('all that is wrong with the files is told at once', async () => {
  const refused = apply({
    templates: { kind: 'directory', entries: [{ path: '../x', sha256: sha256('not stored') }] },
    words: { kind: 'file', entries: [] },
    more: { kind: 'directory', entries: [] },
  });
  const problems = [
    ['files.templates', 'has the unsafe path "../x"'],
    ['files.words', 'is one file, but has 0'],
    ['files.unused', '`./u` was not uploaded'],
    ['files.more', 'the definition has no file `more`'],
    ['files.templates', '1 file(s) are not stored, the first is "../x"'],
  ];
  await expect(refused).rejects.toMatchObject({
    code: 'invalid',
    details: { problems: problems.map(([path, message]) => expect.objectContaining({ path, message })) },
  });
});

test('a scan is not started with a file that is not stored, or for an input that is none', async () => {
  await apply(await uploaded());
  const start = (inputs: Record<string, string | { sha256: string }>) =>
    startScan(clone.database, defaultWorkspace, {
      definition: 'with-files',
      scope: { allow: ['a.test'] },
      inputs,
    });
  const unknown = sha256('nobody has it');
  await expect(start({ list: { sha256: unknown } })).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringContaining(`no file with SHA-256 ${unknown} is stored`),
  });
  await expect(start({})).rejects.toMatchObject({ message: expect.stringContaining('is required') });
});
