import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundleWorkflowCode, DefaultLogger, type WorkflowBundle } from '@temporalio/worker';

const checkout = join(import.meta.dirname, '..', '..');

export interface Mutation {
  file: 'scan.ts' | 'maintenance.ts';
  find: string;
  replace: string;
}

/** The bundle of a copy of the workflows with one change. Throws when the text to change is not there exactly once. */
export async function bundleOfMutant({ file, find, replace }: Mutation): Promise<WorkflowBundle> {
  const folder = mkdtempSync(join(tmpdir(), 'sonar-mutant-'));
  try {
    cpSync(join(checkout, 'workflows'), join(folder, 'workflows'), { recursive: true });
    for (const shared of ['src', 'node_modules', 'package.json'])
      symlinkSync(join(checkout, shared), join(folder, shared));
    const path = join(folder, 'workflows', file);
    const parts = readFileSync(path, 'utf8').split(find);
    if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} times ${JSON.stringify(find)}`);
    writeFileSync(path, parts.join(replace));
    return await bundleWorkflowCode({
      workflowsPath: join(folder, 'workflows', 'index.ts'),
      logger: new DefaultLogger('ERROR'),
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
