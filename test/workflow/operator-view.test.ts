// What an operator sees of a scan in the Temporal UI.
import fc from 'fast-check';
import { searchAttributes } from '#sonar/contracts/names.ts';
import { changesOf, detailsOf } from '#workflows/scan-view.ts';
import { HistoryView } from './history-view.ts';
import { report, step } from './scripted-scan.ts';
import { type ScriptedRun, useTimeSkipping } from './scripted-temporal.ts';

const temporal = useTimeSkipping();

const hostile = 'a | b\n\n# c <img src=//x> `d` [e](//f) ![g](//h) \\';

/** The details as the UI asks for them. */
async function detailsSeen({ handle }: ScriptedRun): Promise<string> {
  const metadata = await handle.query<{ currentDetails: string }>('__temporal_workflow_metadata');
  return metadata.currentDetails;
}

async function attributesSeen({ handle }: ScriptedRun): Promise<Record<string, unknown>> {
  const { typedSearchAttributes } = await handle.describe();
  return Object.fromEntries(typedSearchAttributes.getAll().map(({ key, value }) => [key.name, value]));
}

test('search attributes tell name, definition and status, and the status follows the scan', async () => {
  const run = await temporal.current.startScan(
    ({ scanId }) => ({
      async plan(call) {
        if (call === 1) await temporal.current.gateway.wakeScan(scanId);
        return report({ status: call === 1 ? 'Paused' : 'Running', settleable: call > 1 });
      },
      settle: () => ({ status: 'CompletedWithErrors' }),
    }),
    { name: hostile },
  );
  await run.handle.result();
  expect(await attributesSeen(run)).toEqual({
    [searchAttributes.name]: hostile,
    [searchAttributes.definition]: 'loopback-survey',
    [searchAttributes.status]: 'CompletedWithErrors',
  });
  expect((await HistoryView.of(run.handle)).shownStatuses).toEqual([
    'Paused',
    'Running',
    'CompletedWithErrors',
  ]);
});

const row = (...cells: string[]): string => cells.join('\u00a0\u00a0 | ');

test('the details are a table of the steps, also after the end', async () => {
  const run = await temporal.current.startScan(() => ({
    plan: () =>
      report({
        settleable: true,
        steps: [
          step({ state: 'settled', completed: 3, noWork: 1, failed: 1 }),
          step({ step: 'web', inFlight: 2, cancelled: 1, note: 'starved: no live worker has web, curl' }),
        ],
      }),
    settle: () => ({ status: 'Completed' }),
  }));
  await run.handle.result();
  expect((await detailsSeen(run)).split('\n')).toEqual([
    '**night watch** — Completed',
    '',
    row('step', 'state', 'pending', 'in flight', 'done', 'failed', 'note'),
    '--- | --- | --: | --: | --: | --: | ---',
    row('ports', 'settled', '0', '0', '3', '1', '1 without work'),
    row('web', 'open', '0', '2', '0', '0', '1 cancelled; starved: no live worker has web, curl'),
  ]);
});

test('each wait says what its tick did', () => {
  const before = report({ steps: [step({ completed: 1 }), step({ step: 'web' })] });
  const now = report({
    made: 9,
    steps: [
      step({ state: 'settled', completed: 4, failed: 2 }),
      step({ step: 'web', inFlight: 3, cancelled: 1, note: 'starved: no live worker has its tag' }),
    ],
  });
  expect(changesOf(before, now, { placed: '8 on nmap', recovered: '2 lost tasks' })).toBe(
    'made 9; placed 8 on nmap; recovered 2 lost tasks; completed 3 of ports; failed 2 of ports; ports is settled; cancelled 1 of web; 3 in flight; web is starved',
  );
  expect(
    changesOf(
      now,
      { ...now, made: 0, steps: [step({ state: 'settled', completed: 4, failed: 2 })] },
      nothing,
    ),
  ).toBe('nothing changed');
});

const nothing = { placed: '', recovered: '' };

/** The marks of a line that Markdown would read. */
const marksOf = (line: string): string =>
  line.replaceAll(/\\[\\|<>&`*_~[\]!#]/g, '').replaceAll(/[^\\|<>&`*_~[\]!#\n]/g, '');

test('no name, reason or note can break the table or bring in markup', () => {
  const text = fc.oneof(fc.string({ unit: 'binary' }), fc.constant(hostile), fc.constant('\\'.repeat(201)));
  fc.assert(
    fc.property(text, text, text, (name, reason, note) => {
      const rows = [step({ note }), step({ step: 'web', note: reason })];
      const lines = detailsOf(report({ name, reason, steps: rows }), note).split('\n');
      expect(lines).toHaveLength(8);
      expect([0, 2, 6, 7].map((line) => marksOf(lines[line] ?? ''))).toEqual([
        '****',
        '****',
        '||||||',
        '||||||',
      ]);
    }),
  );
});

test('a summary stays a line, however many steps have changed', () => {
  const steps = Array.from({ length: 80 }, (_, index) => step({ step: `step-${index}`, completed: 5 }));
  expect(changesOf(undefined, report({ steps }), nothing)).toMatch(/^completed 5 of step-0; .{100,190}$/);
});
