// A worker on a machine whose metadata AWS's own mock serves. Elsewhere than in CI it is left out where Go is not.
import { startLong } from '../contract/worker/long-command.ts';
import { openWorkbench } from '../contract/worker/workbench.ts';
import { buildMetadataMock, goProgram, startMetadataMock } from '../fixtures/ec2-metadata-mock.ts';

const hasGo = goProgram() !== undefined;
if (!hasGo)
  process.stderr.write('metadata-mock: no Go here to build the mock with, so its tests are left out\n');
const withMock = hasGo || process.env.CI ? describe : describe.skip;

const inSeconds = (seconds: number) =>
  new Date(Date.now() + seconds * 1_000).toISOString().replace(/\.\d+/, '');

withMock('with amazon-ec2-metadata-mock', () => {
  let program: string;
  beforeAll(async () => {
    program = await buildMetadataMock();
  }, 600_000);

  test('its notice drains the worker, and what cannot end in time is released', async () => {
    await using mock = await startMetadataMock(
      program,
      '-d',
      '3',
      '--action',
      'terminate',
      '--time',
      inSeconds(15),
      '--rebalance-delay-sec',
      '3600',
    );
    await using bench = await openWorkbench();
    const worker = bench.worker({ metadataUrl: mock.url, metadataEveryMs: 50, drainMs: 600_000 });
    await worker.start();
    const long = await startLong(bench);
    expect(bench.api.of('pulse').at(-1)).toMatchObject({ draining: false });
    expect(await worker.done).toEqual({ reason: 'spot' });
    expect(bench.api.of('pulse').at(-1)).toMatchObject({ draining: true, freeSlots: 0 });
    expect(bench.api.of('release')).toMatchObject([{ attemptId: long.attemptId, reason: 'spot' }]);
    expect(bench.api.of('result')).toEqual([]);
    expect(bench.puller.acked).toBe(1);
  });

  test('its recommendation stops the pulling, and what runs may finish', async () => {
    await using mock = await startMetadataMock(program, '-d', '3600', '--rebalance-delay-sec', '2');
    await using bench = await openWorkbench();
    const worker = bench.worker({ metadataUrl: mock.url, metadataEveryMs: 50, drainMs: 0 });
    await worker.start();
    const long = await startLong(bench, 'until [ -e end ]; do sleep 0.02; done');
    await bench.watch.until('a draining pulse', () => bench.api.of('pulse').at(-1)?.draining === true);
    long.end();
    expect(await worker.done).toEqual({ reason: 'spot' });
    expect(bench.api.results.get(long.attemptId)).toMatchObject({ outcome: 'completed' });
    expect(bench.api.of('release')).toEqual([]);
  });
});
