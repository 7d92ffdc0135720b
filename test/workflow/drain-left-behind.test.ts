// In a file of its own: on this server the time never again moves by itself once a workflow has ended over a running
// activity.
import { moved, over } from './scripted-scan.ts';
import { sendWakes, useTimeSkipping } from './scripted-temporal.ts';

const temporal = useTimeSkipping();

test('a drain that does not end holds up neither the next run nor the end', async () => {
  const release = Promise.withResolvers<void>();
  const run = await temporal.current.startScan((scan) => ({
    async plan(call) {
      // Past the events at which a run waits for its drain no longer.
      if (call === 2) await sendWakes(scan, 3_050);
      return call < 4 ? moved(call, { unread: call === 1, more: true }) : over();
    },
    async drain() {
      await release.promise;
      return { batches: 0 };
    },
  }));
  expect(await run.handle.result()).toEqual({ status: 'Completed' });
  release.resolve();
  expect(await temporal.current.chainOf(run)).toHaveLength(2);
  expect(run.calls.count('drain')).toBe(1);
});
