// sslscan and testssl.sh: what their rows and records say, beside the keys that tools.test.ts holds.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { eventsOf, only } from './events-of.ts';
import { keysOf, sample } from './tool-samples.ts';

const fixture = (path: string): Buffer => readFileSync(join(__dirname, '../../fixtures', path));
const certificate = '396e9ed9999ddf2bde4eafbddde82144261d3207b1633f23c529cafd87b02953';

const records = (events: Awaited<ReturnType<typeof eventsOf>>, type: string) =>
  only(events, 'row').flatMap((event) => event.records.filter((record) => record.type === type));

describe('sslscan', () => {
  test('a row says what is on offer, and the service and the certificate go together', async () => {
    const events = await eventsOf(sample('sslscan-2.0.7.xml'), { reader: 'sslscan' });
    const [{ row } = { row: {} }] = only(events, 'row');
    expect(row).toMatchObject({
      host: '127.0.0.1',
      ip_port: '127.0.0.1:18443',
      tls_versions: ['TLSv1.2', 'TLSv1.3'],
      preferred: 'TLS_AES_256_GCM_SHA384',
      sha256: certificate,
      subject: 'loopback.test',
      names: ['loopback.test', '127.0.0.1'],
      not_before: '2026-11-30T07:17:01Z',
      self_signed: true,
      expired: false,
      flaws: ['certificate:self-signed'],
    });
    expect(records(events, 'service')).toMatchObject([{ fields: { tls: true, certificate } }]);
    expect(records(events, 'certificate')).toMatchObject([
      { fields: { sha256: certificate, self_signed: true, subject_cn: 'loopback.test' } },
    ]);
  });

  test('old versions and weak ciphers are findings, one a kind, with what they are about', async () => {
    const events = await eventsOf(sample('sslscan-weak.xml'), { reader: 'sslscan' });
    const findings = records(events, 'finding').map(({ fields, sets }) => [
      fields.rule,
      fields.severity,
      sets?.extracted,
    ]);
    expect(findings).toEqual([
      ['protocol:TLSv1.0', 'low', ['TLSv1.0']],
      ['protocol:TLSv1.1', 'low', ['TLSv1.1']],
      ['cipher:null', 'high', ['ECDHE-ECDSA-NULL-SHA', 'AECDH-NULL-SHA']],
      ['cipher:anonymous', 'high', ['AECDH-AES256-SHA', 'AECDH-AES128-SHA']],
      ['certificate:self-signed', 'low', []],
    ]);
  });

  test('a port without TLS and a closed one are warnings; nothing is bad', async () => {
    const events = await eventsOf(fixture('tool-runs/sslscan-many.xml'), { reader: 'sslscan' });
    expect(only(events, 'row').map(({ row }) => row.ip_port)).toEqual(['127.0.0.1:18443']);
    expect(only(events, 'bad')).toEqual([]);
    expect(only(events, 'warning').map(({ message }) => message)).toEqual([
      '127.0.0.1:18081 speaks no TLS',
      'sslscan: Could not open a connection to host 127.0.0.1 (127.0.0.1) on port 18099.',
      'sslscan: Targets file targets.txt does not exist.',
    ]);
  });

  test('a name that was asked for is the host, and the address stays the address', async () => {
    const events = await eventsOf(sample('sslscan-named.xml'), { reader: 'sslscan' });
    expect(keysOf(events)).toEqual([
      'domain www.example.test',
      'address 127.0.0.1',
      'service 127.0.0.1/tcp/18443',
      `certificate ${certificate}`,
      'finding sslscan certificate:self-signed 127.0.0.1:18443',
    ]);
    expect(records(events, 'service')[0]?.sets?.hostnames).toEqual(['www.example.test']);
  });

  test('a document that is cut keeps the tests that were complete', async () => {
    const many = fixture('tool-runs/sslscan-many.xml').toString();
    const events = await eventsOf(many.slice(0, many.lastIndexOf('<ssltest') + 80), { reader: 'sslscan' });
    expect(only(events, 'row')).toHaveLength(1);
    expect(only(events, 'warning').map(({ message }) => message)).toEqual([
      'the output was cut: it ends before the scan does',
    ]);
    const other = await eventsOf('<nmaprun></nmaprun>', { reader: 'sslscan' });
    expect(only(other, 'bad')).toMatchObject([{ reason: 'the output is no sslscan XML' }]);
  });
});

const sslscan = spawnSync('sslscan', ['--version'], { encoding: 'utf8' });
// CI installs sslscan and must have it; elsewhere it is run where there is one.
const withSslscan = sslscan.error === undefined || process.env.CI ? describe : describe.skip;

withSslscan('sslscan itself', () => {
  test('is run on loopback, and its output is read', async () => {
    const server = createServer({
      key: fixture('tls/loopback.key.pem'),
      cert: fixture('tls/loopback.cert.pem'),
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const child = spawn('sslscan', [
      '--no-colour',
      '--show-certificate',
      '--sni-name=loopback.test',
      '--xml=-',
      `127.0.0.1:${port}`,
    ]);
    const events = await eventsOf(Buffer.concat(await child.stdout.toArray()), { reader: 'sslscan' });
    server.closeAllConnections();
    await once(server.close(), 'close');
    expect(keysOf(events)).toEqual([
      'domain loopback.test',
      'address 127.0.0.1',
      `service 127.0.0.1/tcp/${port}`,
      `certificate ${certificate}`,
      `finding sslscan certificate:self-signed 127.0.0.1:${port}`,
    ]);
    expect(events.filter(({ kind }) => kind === 'bad' || kind === 'warning')).toEqual([]);
  });
});

describe('testssl', () => {
  test('problems of the server are findings; problems of the test and good news are rows alone', async () => {
    const events = await eventsOf(sample('testssl-3.0.8.json'), { reader: 'testssl' });
    const findings = records(events, 'finding').map(({ fields }) => [fields.rule, fields.severity]);
    expect(findings).toEqual([
      ['TLS1', 'low'],
      ['TLS1_1', 'low'],
      ['cert_chain_of_trust', 'critical'],
      ['cert_validityPeriod', 'high'],
      ['cert_revocation', 'high'],
    ]);
    const versions = records(events, 'service').flatMap(({ sets }) => sets?.tls_versions ?? []);
    expect(versions).toEqual(['TLSv1.0', 'TLSv1.1', 'TLSv1.2']);
    const [engine] = only(events, 'row');
    expect(engine).toMatchObject({
      row: { rule: 'engine_problem', severity: 'warn', host: null },
      records: [],
    });
  });

  test('the flat and the pretty form give the same records', async () => {
    const flat = keysOf(await eventsOf(sample('testssl-3.0.8.json'), { reader: 'testssl' }));
    const pretty = keysOf(await eventsOf(sample('testssl-pretty.json'), { reader: 'testssl' }));
    expect(new Set(pretty)).toEqual(new Set(flat));
  });

  test('a name that was given is the host, with the address that was tested', async () => {
    const events = await eventsOf(sample('testssl-named.json'), { reader: 'testssl' });
    const hosts = new Set(only(events, 'row').map(({ row }) => row.host));
    expect(hosts).toEqual(new Set([null, 'www.example.test']));
    expect(records(events, 'finding')).toMatchObject([
      {
        fields: { rule: 'LUCKY13', target: '127.0.0.1:18443', host: 'www.example.test', ip: '127.0.0.1' },
        sets: { cve: ['CVE-2013-0169'], cwe: ['CWE-310'] },
      },
    ]);
  });

  test('a target that did not answer leaves rows that say so, and no record but its address', async () => {
    const events = await eventsOf(fixture('tool-runs/testssl-closed.json'), { reader: 'testssl' });
    expect(keysOf(events)).toEqual(['address 127.0.0.1']);
    expect(only(events, 'row').map(({ row }) => [row.rule, row.severity])).toEqual([
      ['engine_problem', 'warn'],
      ['scanProblem', 'fatal'],
      ['scanTime', 'warn'],
    ]);
    expect(only(events, 'bad')).toEqual([]);
  });
});
