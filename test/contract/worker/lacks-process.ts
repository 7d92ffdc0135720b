// Outputs that are collected while no descriptor is to be had.
import { closeSync, mkdirSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { collectOutputs } from '#sonar/worker/outputs.ts';
import { attemptFolders } from '#sonar/worker/paths.ts';

const folders = attemptFolders(process.argv[2] as string, 'a');
mkdirSync(folders.out, { recursive: true });
writeFileSync(join(folders.out, 'records'), 'x');
const taken: number[] = [];
try {
  for (;;) taken.push(openSync('/dev/null', 'r'));
} catch {
  // As many as the limit gives.
}
const outputs = [{ name: 'records', path: 'records', optional: false }];
const end = await collectOutputs(outputs, folders, 1e9).catch(
  (error: unknown) => (error as { code: string }).code,
);
for (const descriptor of taken) closeSync(descriptor);
console.log(JSON.stringify(end));
