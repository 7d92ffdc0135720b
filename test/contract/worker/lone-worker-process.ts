// A worker in a process of its own, for tests that kill it: config and one message come as JSON arguments.
import { createLogger } from '#sonar/platform/logger.ts';
import { workerConfigSchema } from '#sonar/worker/config.ts';
import { createWorker } from '#sonar/worker/worker.ts';
import { createScriptedPuller } from './scripted-puller.ts';
import { createWatch } from './watch.ts';

const [config, message] = process.argv.slice(2).map((text) => JSON.parse(text) as unknown);
const puller = createScriptedPuller(createWatch());
const log = createLogger('lone-worker', process.env.SONAR_TEST_LOG ?? 'silent');
const worker = createWorker(workerConfigSchema.parse(config), { log, puller });
await worker.start();
if (message !== undefined) puller.push(JSON.stringify(message));
await worker.done;
process.exit(0);
