import fc from 'fast-check';
import { followScan } from '#sonar/cli/follow-scan.ts';
import { displayWidth } from '#sonar/cli/safe-text.ts';
import { barOf, renderScanProgress } from '#sonar/cli/scan-progress.ts';
import type { WatchEvent } from '#sonar/cli/watch-scan.ts';
import type { ScanDetail } from '#sonar/contracts/scan-api.ts';
import { SonarError } from '#sonar/platform/errors.ts';
import { CapturedSink } from './command-line.ts';
import { scanDetail, scanIds, stepView } from './views.ts';

const space = { width: 100, rows: 30, colour: false, unicode: true };
const figures = { elapsedMs: 65_000, tasksPerSecond: 4.25, silentMs: null };

async function* seen(...details: ScanDetail[]): AsyncGenerator<WatchEvent> {
  for (const detail of details) yield { kind: 'seen', detail };
}

test('the picture shows the scan, its steps and what holds them', () => {
  const detail = scanDetail({
    steps: [
      stepView('ports', { completed: 7, failed: 1 }, { state: 'settled' }),
      stepView('web', { pending: 1, published: 2, running: 1, completed: 4 }, { refused: 2 }),
      stepView('report', {}, {}),
      stepView('deep', { pending: 3 }, { tags: ['nuclei'], starvedSince: '2026-01-02T03:05:00.000Z' }),
    ],
    poisoned: 1,
  });
  expect(renderScanProgress(detail, figures, space)).toEqual([
    `survey  Running  1:05  4.3 tasks/s  ${scanIds.first}`,
    'STEP    STATE    PENDING  RUNNING  DONE  FAILED',
    'ports   settled        0        0     7       1  █████████████████████████ 100%',
    'web     running        3        1     4       0  ████████████░░░░░░░░░░░░░  50%',
    'report  waiting        0        0     0       0  ░░░░░░░░░░░░░░░░░░░░░░░░░   0%',
    'deep    starved        3        0     0       0  ░░░░░░░░░░░░░░░░░░░░░░░░░   0%',
    'web: 2 out of scope or not a host, kept out',
    'deep: no live worker has the tag nuclei; start one: sonar worker start --tags nuclei',
    `1 result could not be read; see: sonar poison list --scan ${scanIds.first}`,
  ]);
});

test('a narrow terminal keeps the figures', () => {
  const detail = scanDetail({
    steps: [stepView('ports-of-all-hosts', { completed: 7, failed: 1, pending: 12 })],
  });
  expect(renderScanProgress(detail, figures, { ...space, width: 40 }).slice(1)).toEqual([
    'STEP               PEND  RUN  DONE  FAIL',
    'ports-of-all-hos…    12    0     7     1',
  ]);
});

test('no picture is wider or higher than its terminal', () => {
  const step = fc.record({
    name: fc.string({ unit: 'binary', maxLength: 70 }),
    done: fc.nat(1_000_000),
    failed: fc.nat(1_000_000),
    cancelled: fc.nat(3),
    refused: fc.nat(2),
  });
  const arbitrary = fc.record({
    steps: fc.array(step, { maxLength: 40 }),
    width: fc.integer({ min: 10, max: 200 }),
    rows: fc.integer({ min: 6, max: 50 }),
    name: fc.string({ unit: 'binary' }),
  });
  fc.assert(
    fc.property(arbitrary, ({ steps, width, rows, name }) => {
      const detail = scanDetail({
        name,
        steps: steps.map((each) =>
          stepView(
            each.name,
            { completed: each.done, failed: each.failed, cancelled: each.cancelled },
            { refused: each.refused },
          ),
        ),
      });
      const lines = renderScanProgress(detail, figures, { ...space, width, rows });
      expect(lines.length).toBeLessThanOrEqual(rows);
      for (const line of lines) {
        expect(displayWidth(line)).toBeLessThanOrEqual(width);
        expect(line).not.toMatch(/\p{Cc}/u);
      }
    }),
    { numRuns: 200 },
  );
});

test('a bar is full only when its step is settled', () => {
  expect(barOf(stepView('a', { completed: 1000 }), 15, false)).toBe('#########.  99%');
  expect(barOf(stepView('a', { completed: 1000 }, { state: 'settled' }), 15, false)).toBe('########## 100%');
  expect(barOf(stepView('a'), 15, false)).toBe('..........   0%');
});

test('on a terminal each picture is drawn over the one before', async () => {
  const terminal = new CapturedSink(true);
  const last = scanDetail({ status: 'Completed', finishedAt: '2026-01-02T03:05:05.678Z' });
  await followScan(seen(scanDetail(), last), terminal, { environment: { NO_COLOR: '1' }, now: () => 0 });
  expect(terminal.text.split('\u001b[3A')).toHaveLength(2);
  expect(terminal.text).not.toMatch(/\u001b\[\d*m/);
  expect(terminal.text).toContain('Completed  1:00');
});

test('colours where the terminal has them', async () => {
  const terminal = new CapturedSink(true);
  await followScan(seen(scanDetail()), terminal, { environment: { TERM: 'xterm' }, now: () => 0 });
  expect(terminal.text).toContain('\u001b[36mRunning\u001b[39m');
});

test('in a pipe there is one line for each change of state, and none for each task', async () => {
  async function* events(): AsyncGenerator<WatchEvent> {
    yield* seen(
      scanDetail({ steps: [stepView('ports', { pending: 3 })] }),
      scanDetail({ steps: [stepView('ports', { pending: 2, running: 1 })] }),
      scanDetail({ steps: [stepView('ports', { pending: 2, completed: 1 })] }),
    );
    yield { kind: 'silent', silentMs: 10, fault: new SonarError('unreachable', 'no api') };
    yield { kind: 'silent', silentMs: 20, fault: new SonarError('unreachable', 'no api') };
    yield* seen(
      scanDetail({ status: 'Completed', steps: [stepView('ports', { completed: 3 }, { state: 'settled' })] }),
    );
  }
  const pipe = new CapturedSink();
  await followScan(events(), pipe, { environment: {} });
  expect(pipe.text.trimEnd().split('\n')).toEqual([
    `scan ${scanIds.first} Running`,
    'step ports queued: 3 pending, 0 running, 0 done, 0 failed',
    'step ports running: 2 pending, 1 running, 0 done, 0 failed',
    'no api (trying again)',
    'the api answers again',
    `scan ${scanIds.first} Completed`,
    'step ports settled: 0 pending, 0 running, 3 done, 0 failed',
  ]);
});
