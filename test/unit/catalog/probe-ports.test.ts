import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { delimiter, join } from 'node:path';
import type { Row } from '#sonar/contracts/definition.ts';
import { nmapXmlReader } from '#sonar/readers/nmap-xml.ts';
import { listen, runProbe, temporaryFolder } from './run-probe.ts';

// Each test starts processes, which may wait for their turn on a loaded machine.
jest.setTimeout(60_000);

const spec = { reader: 'nmap-xml', record: null, fields: {} };

/** Rows of the file; warnings and bad records are faults here. */
async function rowsOf(path: string): Promise<Row[]> {
  const bytes = await readFile(path);
  async function* once(): AsyncGenerator<Uint8Array> {
    yield bytes;
  }
  const rows: Row[] = [];
  for await (const event of nmapXmlReader.read(once(), spec)) {
    if (event.kind === 'row') rows.push(event.row);
    else if (event.kind !== 'records') throw new Error(JSON.stringify(event));
  }
  return rows;
}

const nmapIsInstalled = (process.env.PATH ?? '')
  .split(delimiter)
  .some((folder) => existsSync(join(folder, 'nmap')));

test('continuous integration has nmap, so that its engine is tested there', () => {
  expect(nmapIsInstalled || process.env.CI === undefined).toBe(true);
});

// Where nmap is missing, the other engine answers to both names: the claim is that they say the same.
describe.each(nmapIsInstalled ? ['nmap', 'connect'] : ['connect'])('the engine %s', (engine) => {
  test('finds the open ports of a list and no other', async () => {
    await using first = await listen(createServer());
    await using second = await listen(createServer());
    const closing = await listen(createServer());
    await closing[Symbol.asyncDispose]();
    await using folder = await temporaryFolder();
    const xml = join(folder.path, 'ports.xml');
    const ports = [first, closing, second].map(({ port }) => port);
    const args = ['ports', '--ports', ports.join(','), '--engine', engine, '--xml', xml, '127.0.0.1'];
    expect(await runProbe(args)).toEqual({ code: 0, stderr: '' });
    const open = await rowsOf(xml);
    const expected = [first.port, second.port].toSorted((a, b) => a - b);
    expect(open.map(({ port }) => port)).toEqual(expected);
    expect(open[0]).toMatchObject({ ip: '127.0.0.1', host: '127.0.0.1', protocol: 'tcp', state: 'open' });
  });

  test('finds nothing where nothing listens, and still writes a whole document', async () => {
    const closing = await listen(createServer());
    await closing[Symbol.asyncDispose]();
    await using folder = await temporaryFolder();
    const xml = join(folder.path, 'ports.xml');
    expect(
      await runProbe([
        'ports',
        '--ports',
        String(closing.port),
        '--engine',
        engine,
        '--xml',
        xml,
        '127.0.0.1',
      ]),
    ).toMatchObject({ code: 0 });
    expect(await rowsOf(xml)).toEqual([]);
  });

  test('tells a name that was asked for', async () => {
    await using server = await listen(createServer());
    await using folder = await temporaryFolder();
    const xml = join(folder.path, 'ports.xml');
    expect(
      await runProbe([
        'ports',
        '--ports',
        String(server.port),
        '--engine',
        engine,
        '--xml',
        xml,
        'localhost',
      ]),
    ).toMatchObject({ code: 0 });
    expect(await rowsOf(xml)).toMatchObject([{ host: 'localhost', port: server.port }]);
  });
});

test('without nmap on the PATH the probe connects by itself, and says so where nmap was asked for', async () => {
  await using server = await listen(createServer());
  await using folder = await temporaryFolder();
  const xml = join(folder.path, 'ports.xml');
  const args = ['ports', '--ports', String(server.port), '--xml', xml, '127.0.0.1'];
  expect(await runProbe(args, folder.path)).toEqual({ code: 0, stderr: '' });
  expect(await readFile(xml, 'utf8')).toContain('version="sonar-probe"');
  expect(await rowsOf(xml)).toMatchObject([{ port: server.port }]);
  expect(await runProbe([...args, '--engine', 'nmap'], folder.path)).toEqual({
    code: 1,
    stderr: `sonar-probe: nmap is not on the PATH (${folder.path})\n`,
  });
});

const wrongArguments: [string[], RegExp][] = [
  [['--ports', '80', '--xml', 'x', '-oN'], /unknown option "-oN"/],
  [['--ports', '80', '--xml', 'x', '--script=x'], /unknown option/],
  [['--ports', '80', '--xml', 'x', '127.0.0.1', '127.0.0.2'], /1 arguments are needed/],
  [['--ports', '80', '--xml', 'x', '127.0.0.0/8'], /neither a host name nor an address/],
  [['--ports', '80', '--xml', 'x', '127.0.0.1-20'], /neither a host name nor an address/],
  [['--ports', '80', '--xml', 'x', '$(id)'], /neither a host name nor an address/],
  [['--ports', '80', '--xml', 'x', ''], /neither a host name nor an address/],
  [['--ports', '0', '--xml', 'x', '127.0.0.1'], /no port and no range/],
  [['--ports', '80-70', '--xml', 'x', '127.0.0.1'], /no port and no range/],
  [['--ports', '-oN', '--xml', 'x', '127.0.0.1'], /no port and no range/],
  [['--ports', '80', '127.0.0.1'], /--xml is missing/],
  [['--ports', '80', '--ports', '81', '--xml', 'x', '127.0.0.1'], /given twice/],
  [['--ports'], /needs a value/],
];

test('wrong arguments are refused before anything is touched', async () => {
  const results = await Promise.all(wrongArguments.map(([args]) => runProbe(['ports', ...args])));
  for (const [index, [, message]] of wrongArguments.entries()) {
    expect(results[index]?.code).toBe(2);
    expect(results[index]?.stderr).toMatch(message);
  }
});

test('an unknown command shows how the probe is used', async () => {
  const { code, stderr } = await runProbe(['toString']);
  expect(code).toBe(2);
  expect(stderr).toMatch(/unknown command "toString"\nusage:/);
});
