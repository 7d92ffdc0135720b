import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';

const loaded = `data:text/javascript,${encodeURIComponent(`
import { registerHooks } from 'node:module';
registerHooks({ load(url, context, next) { process.stderr.write('loaded ' + url + '\\n'); return next(url, context); } });
`)}`;

async function sonar(...words: string[]): Promise<{ code: number | null; out: string; err: string }> {
  const child = spawn(process.execPath, ['--import', loaded, 'src/main.ts', ...words], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { code: await ended, out, err };
}

test('help hints at the first use, and loads nothing that takes long', async () => {
  const { code, out, err } = await sonar('--help');
  expect(code).toBe(0);
  expect(out).toContain('sonar up');
  expect(err).toContain('loaded file:');
  expect(err).not.toMatch(/node_modules\/(?!commander)|cli\/api-client|src\/(stack|roles|db)\//);
});

test('the version is the package’s', async () => {
  expect((await sonar('--version')).out).toMatch(/^\d+\.\d+\.\d+\n$/);
});
