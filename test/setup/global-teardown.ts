import { rmSync } from 'node:fs';

export default async function stopSharedStack(): Promise<void> {
  const shared = globalThis.sonarTestStack;
  if (!shared) return;
  await shared.stack.stop();
  rmSync(shared.directory, { recursive: true, force: true });
}
