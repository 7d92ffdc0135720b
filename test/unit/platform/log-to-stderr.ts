// Run by logger.test.ts: logs, and says on standard output that it lives.
import { writeSync } from 'node:fs';
import { createLogger } from '#sonar/platform/logger.ts';

const log = createLogger('test', 'info');
log.info({ operation: 'first' });
log.fatal({ operation: 'second' });
setTimeout(() => {
  log.info({ operation: 'third' });
  writeSync(1, 'alive\n');
}, 50);
