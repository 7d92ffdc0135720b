// Run by export-records.test.ts under a limit on the size of files: exports into a folder, and says how it ended.
import { join } from 'node:path';
import { exportRecords, type RecordPage } from '#sonar/cli/export-records.ts';
import type { ExportFormat } from '#sonar/cli/inventory-filter.ts';
import { isSonarError } from '#sonar/platform/errors.ts';

const [folder = '', format = ''] = process.argv.slice(2);
const sink = {
  write() {},
  writeBytes: () => Promise.resolve(),
  isTerminal: false,
  size: () => ({ columns: 80, rows: 24 }),
};

async function* pages(): AsyncGenerator<RecordPage> {
  for (let page = 0; page < 100; page += 1) {
    const items = Array.from({ length: 10 }, (_, index) => ({
      type: 'domain',
      key: `k${page}-${index}`,
      partial: false,
      firstSeenAt: '',
      lastSeenAt: '',
      fields: { a: 'x'.repeat(50) },
      sets: {},
    }));
    yield { items, warnings: [] };
  }
}

const end = await exportRecords(pages(), format as ExportFormat, join(folder, 'out'), sink).then(
  () => 'written',
  (error: unknown) => (isSonarError(error) ? `${error.code}: ${error.message}` : String(error)),
);
process.stdout.write(end);
