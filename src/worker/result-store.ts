// Results on disk before they are sent: a worker that dies between the send and the answer, or while the api is
// away, has them for its successor to send, under the incarnation that made them.
import { open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

const storedResultSchema = z.object({
  v: z.literal(1),
  attemptId: z.uuid(),
  /** Signs the send; the folder is closed to other users. */
  credential: z.string(),
  /** The text of the Result, so that every send is the same to the byte. */
  body: z.string(),
});
export type StoredResult = z.infer<typeof storedResultSchema>;

/** Whole or not at all, whatever dies. A power cut may lose the name: then the attempt is lost and dispatched anew. */
export async function storeResult(directory: string, result: StoredResult): Promise<void> {
  const path = join(directory, `${result.attemptId}.json`);
  {
    await using file = await open(`${path}.part`, 'w', 0o600);
    await file.writeFile(JSON.stringify(result));
    await file.datasync();
  }
  await rename(`${path}.part`, path);
}

export async function forgetResult(directory: string, attemptId: string): Promise<void> {
  await rm(join(directory, `${attemptId}.json`), { force: true });
}

/** Every whole result; what is half written or of another version is passed over. */
export async function storedResults(directory: string): Promise<StoredResult[]> {
  const results: StoredResult[] = [];
  for (const name of await readdir(directory)) {
    if (!name.endsWith('.json')) continue;
    try {
      results.push(storedResultSchema.parse(JSON.parse(await readFile(join(directory, name), 'utf8'))));
    } catch {
      continue;
    }
  }
  return results;
}
