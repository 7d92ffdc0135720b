import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runProbe, temporaryFolder } from './run-probe.ts';

// Each test starts processes, which may wait for their turn on a loaded machine.
jest.setTimeout(60_000);

async function reportOf(files: Record<string, string>): Promise<string> {
  await using folder = await temporaryFolder();
  const pages = join(folder.path, 'pages');
  await mkdir(pages);
  for (const [path, content] of Object.entries(files)) {
    await mkdir(join(pages, path, '..'), { recursive: true });
    await writeFile(join(pages, path), content);
  }
  await writeFile(join(folder.path, 'outside.jsonl'), '{"url":"http://outside.test/"}');
  await symlink(join(folder.path, 'outside.jsonl'), join(pages, 'link.jsonl'));
  const out = join(folder.path, 'report.html');
  expect(await runProbe(['report', pages, out])).toEqual({ code: 0, stderr: '' });
  return await readFile(out, 'utf8');
}

test('every endpoint of every folder is listed once, in the order of URLs', async () => {
  const html = await reportOf({
    'b/web.jsonl': '{"url":"http://b.test/","status":200,"title":"B"}\n',
    'a/web.jsonl':
      '{"url":"https://a.test/","status":404,"tls":{"subject":"CN=a"}}\n\n{"url":"http://a.test/"}',
    'c/web.jsonl': '',
  });
  expect(html).toContain('<h1>3 endpoints</h1>');
  const urls = [...html.matchAll(/href="([^"]*)"/g)].map(([, url]) => url);
  expect(urls).toEqual(['http://a.test/', 'http://b.test/', 'https://a.test/']);
  expect(html).toContain('<td>CN=a</td>');
});

test('nothing is a page too', async () => {
  expect(await reportOf({})).toContain('<h1>0 endpoints</h1>');
});

test('what targets say is text, never markup, and only http and https become links', async () => {
  const hostile = '<script>alert(1)</script>"\'`&';
  const html = await reportOf({
    'a.jsonl': [
      JSON.stringify({
        url: `http://a.test/${hostile}`,
        title: hostile,
        server: hostile,
        status: hostile,
        tls: { subject: hostile },
      }),
      JSON.stringify({ url: 'javascript:alert(1)', title: { nested: true } }),
      'no JSON',
      'null',
    ].join('\n'),
  });
  expect(html).not.toContain('<script');
  expect(html).not.toMatch(/href="javascript/);
  expect(html.match(/&#60;script&#62;/g)).toHaveLength(6);
  expect(html).toContain('<p>2 lines could not be read.</p>');
});

test('a link is not followed', async () => {
  expect(await reportOf({ 'a.jsonl': '{"url":"http://a.test/"}' })).not.toContain('outside.test');
});

test('a folder that is not there is named', async () => {
  const { code, stderr } = await runProbe(['report', '/nowhere/at/all', '/nowhere/out.html']);
  expect(code).toBe(1);
  expect(stderr).toMatch(/\/nowhere\/at\/all/);
});
