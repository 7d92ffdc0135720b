// What an operator sees of a scan in the Temporal UI, in a real browser, on a stack of its own.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { watchScan } from '#sonar/cli/watch-scan.ts';
import { type LocalSonar, startLocalSonar } from '../../demo/local-sonar.ts';
import { openBrowser } from './chromium.ts';

const directory = mkdtempSync(join(tmpdir(), 'sonar-browser-'));
let sonar: LocalSonar;
let browser: Browser;
let page: Page;
let scanId: string;

beforeAll(async () => {
  const log: string[] = [];
  sonar = await startLocalSonar({
    dataDir: directory,
    workers: [{ name: 'looked-at', tags: 'browser', slots: '2' }],
    signal: AbortSignal.timeout(240_000),
    say: (line) => void log.push(line),
  });
  browser = await openBrowser();
  page = await browser.newPage({ viewport: { width: 1500, height: 1200 } });
  await sonar.client.applyDefinition(`
sonar: 1
name: looked-at
inputs: {hosts: {type: hosts, required: true}}
steps:
  greet: {tags: [browser], foreach: {in: inputs.hosts}, target: "\${item}", command: [echo, "\${item}"]}
  fail: {tags: [browser], command: ["false"]}
  after: {tags: [browser], needs: {greet: all}, command: ["true"]}
`);
  const scan = await sonar.client.startScan({
    definition: 'looked-at',
    name: 'night watch',
    inputs: { hosts: ['127.0.0.1', '127.0.0.2', '192.0.2.1'] },
    scope: { allow: ['127.0.0.0/8'], deny: [] },
  });
  scanId = scan.id;
  for await (const event of watchScan(sonar.client, scanId, { reached: true }))
    if (event.kind === 'silent') throw event.fault;
});
afterAll(async () => {
  await browser?.close();
  await sonar?.stop();
  rmSync(directory, { recursive: true, force: true });
});

const workflows = () =>
  `${sonar.stack.temporalUiUrl ?? ''}/namespaces/${sonar.stack.env.SONAR_TEMPORAL_NAMESPACE}/workflows`;

test('the list of workflows has the scan, completed', async () => {
  await page.goto(workflows());
  const row = page.getByRole('row').filter({ hasText: `scan/${scanId}` });
  await row.waitFor();
  expect((await row.innerText()).toLowerCase()).toContain('completed');
});

test('the scan’s page tells what happened and how each step ended', async () => {
  await page.goto(workflows());
  await page
    .getByRole('link', { name: `scan/${scanId}` })
    .first()
    .click();
  // Summaries on the timeline say what each part is for.
  await page.getByText('is it over?').first().waitFor();
  await page.getByText('User Metadata').click();
  // The UI draws a workflow's Markdown in a frame of its own.
  const details = page
    .frameLocator('#user-metadata-current-details')
    .locator('table', { hasText: 'in flight' });
  await details.waitFor();
  const text = (await details.innerText()).replaceAll(/\s+/g, ' ');
  expect(text).toMatch(/greet settled 0 0 2 0 .*1 refused/);
  expect(text).toMatch(/fail settled 0 0 0 1/);
  expect(text).toMatch(/after settled 0 0 1 0/);
  await page.getByText('Search Attributes').click();
  await page.getByText('CompletedWithErrors').first().waitFor();
  await page.getByText('night watch').first().waitFor();
});
