// Workflows of today go on from the histories of workflows that run already; see README.md when this turns red.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DefaultLogger, Runtime, Worker, type WorkflowBundleOption } from '@temporalio/worker';
import { workflowBundlePath } from '#sonar/roles/workflow-bundle.ts';
import { bundleOfMutant, type Mutation } from './mutant.ts';

const folder = join(import.meta.dirname, 'histories');
const histories = readdirSync(folder).map((file) => ({
  workflowId: file.replace('.json', ''),
  history: JSON.parse(readFileSync(join(folder, file), 'utf8')) as unknown,
}));

beforeAll(() => {
  Runtime.install({
    // What the mutants bring about is no news.
    logger: new DefaultLogger('ERROR', () => undefined),
    telemetryOptions: { logging: { filter: 'ERROR', forward: {} } },
    shutdownSignals: [],
  });
});

afterAll(() => Runtime.instance().shutdown());

/** The name of each error, by the history that brought it about. */
async function faultsOf(workflowBundle: WorkflowBundleOption): Promise<Record<string, string>> {
  const faults: Record<string, string> = {};
  for await (const { workflowId, error } of Worker.runReplayHistories({ workflowBundle }, histories))
    if (error) faults[workflowId] = `${error.name}: ${error.message}`;
  return faults;
}

test('every recorded history replays', async () => {
  expect(histories.map(({ workflowId }) => workflowId)).toEqual([
    'maintenance',
    'scan-cancelled',
    'scan-continued-1',
    'scan-continued-2',
    'scan-continued-3',
    'scan-continued-4',
    'scan-drain-fails',
    'scan-idle',
    'scan-recovers',
    'scan-simple',
    'scan-tick-fails',
  ]);
  expect(await faultsOf({ codePath: await workflowBundlePath() })).toEqual({});
});

const mutants: Record<string, Mutation & { breaks: string[] }> = {
  'settles before it places': {
    file: 'scan.ts',
    find: 'const { placed } = report.pending',
    replace:
      'if (report.pending) await reconciler().settle({ scanId });\n    const { placed } = report.pending',
    breaks: ['scan-simple', 'scan-cancelled', 'scan-continued-1'],
  },
  'sleeps once more a tick': {
    file: 'scan.ts',
    find: 'if (!report.more) await this.#wait(changes);',
    replace: 'await condition(() => false, 1);\n    if (!report.more) await this.#wait(changes);',
    breaks: ['scan-simple', 'scan-idle', 'scan-continued-2'],
  },
  'lets a tick wait for the drain': {
    file: 'scan.ts',
    find: 'if (report.unread) this.#startDrain();',
    replace: 'if (report.unread) this.#startDrain();\n    await this.#drain;',
    breaks: ['scan-simple', 'scan-drain-fails'],
  },
  'forgets a cancel': {
    file: 'scan.ts',
    find: 'if (this.#cancelAsked) {',
    replace: 'if (this.#shownStatus === undefined) {',
    breaks: ['scan-cancelled'],
  },
  'looks for lost tasks before it places': {
    file: 'scan.ts',
    find: 'const { placed } = report.pending',
    replace:
      'if (report.stale) await reconciler().recover({ scanId });\n    const { placed } = report.pending',
    breaks: ['scan-recovers'],
  },
  'rests before its pass': {
    file: 'maintenance.ts',
    find: 'const { unread, summary } = await pass();',
    replace: "await sleep('1 second');\n    const { unread, summary } = await pass();",
    breaks: ['maintenance'],
  },
};

test.each(Object.entries(mutants))('a workflow that %s does not', async (_, { breaks, ...mutation }) => {
  const faults = await faultsOf(await bundleOfMutant(mutation));
  for (const name of breaks) expect(faults[name]).toContain('DeterminismViolationError');
});
