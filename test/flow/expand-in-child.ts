// A reconciler's expansion in a process of its own: `expand-in-child.ts SCAN`. Says each batch that it committed, and
// at the end what it held at most.

import type { ScanId } from '#sonar/contracts/ids.ts';
import { openDatabase } from '#sonar/db/pool.ts';
import { settingsSchema } from '#sonar/platform/config.ts';
import { createLogger } from '#sonar/platform/logger.ts';
import { keepRevisions } from '#sonar/stores/revisions.ts';
import { openObjectStore } from '#sonar/transport/object-store.ts';
import { peakMemoryMb } from '../fixtures/peak-memory.ts';
import { planToCompletion } from '../fixtures/scan-planning.ts';
import { stackAddresses } from '../fixtures/stack-addresses.ts';

export interface Said {
  committed?: true;
  made?: number;
  residentMb?: number;
}

const say = (said: Said): void => void process.stdout.write(`${JSON.stringify(said)}\n`);

const addresses = stackAddresses();
const objects = openObjectStore({
  endpoint: addresses.s3Endpoint,
  bucket: addresses.s3Bucket,
  region: addresses.awsRegion,
  urlLifeMs: 300_000,
});
const opened = openDatabase({
  url: process.env.DATABASE ?? '',
  applicationName: 'sonar test child',
  maxConnections: 2,
});
const database: typeof opened = {
  ...opened,
  transaction: async (work) => {
    const result = await opened.transaction(work);
    say({ committed: true });
    return result;
  },
};
const parts = {
  database,
  objects,
  revisions: keepRevisions(),
  settings: settingsSchema.parse({}),
  log: createLogger('test', 'silent'),
};
const made = await planToCompletion(parts, process.argv[2] as ScanId);
say({ made, residentMb: peakMemoryMb() });
await opened.close();
objects.close();
