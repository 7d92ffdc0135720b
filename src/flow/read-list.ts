// The lines of a scan's list: from its row, or streamed from the file that was stored for it, whatever its size.
import type { ScanId } from '#sonar/contracts/ids.ts';
import type { Database } from '#sonar/db/pool.ts';
import { linesOf } from '#sonar/readers/line-stream.ts';
import { tooLong } from '#sonar/readers/lines.ts';
import { scanInputs } from '#sonar/stores/scans.ts';
import { scanInputFile } from '#sonar/stores/stored-files.ts';
import type { ObjectStore } from '#sonar/transport/object-store.ts';
import { readVerified } from './read-output.ts';

export type ListLine = ({ text: string; fault: null } | { text: null; fault: string }) & {
  /** Where the next line begins; 0 of a list that is read from its row. */
  end: number;
};

/**
 * Without blank lines and without the blanks around a line. The whole file is read and its hash verified, but only
 * what lies after `fromByte`, the start of a line, is taken apart.
 * @throws SonarError as {@link readVerified}.
 */
export async function* linesOfInput(
  parts: { database: Database; objects: ObjectStore },
  scanId: ScanId,
  input: string,
  fromByte = 0,
): AsyncGenerator<ListLine> {
  const file = await scanInputFile(parts.database, scanId, input);
  if (file === undefined) {
    const [row] = await scanInputs(parts.database, scanId, [input]);
    for (const text of linesOfRow(row?.content ?? '')) yield { text, fault: null, end: 0 };
    return;
  }
  yield* linesOfStored(parts.objects, file, fromByte);
}

/** The same, of a file that is stored. */
export async function* linesOfStored(
  objects: ObjectStore,
  file: Parameters<typeof readVerified>[1],
  fromByte = 0,
): AsyncGenerator<ListLine> {
  const bytes = after(await readVerified(objects, file), fromByte);
  for await (const line of linesOf(bytes)) {
    const end = fromByte + line.end;
    if (line.kind === 'too-long') {
      yield { text: null, fault: tooLong, end };
      continue;
    }
    const text = line.text.trim();
    // What is no UTF-8 has become U+FFFD by now; a list of one request is refused whole for a NUL.
    if (/[\0\uFFFD]/.test(text))
      yield { text: null, fault: 'a line holds bytes that are no UTF-8 text', end };
    else if (text !== '') yield { text, fault: null, end };
  }
}

/** As a list is kept in a scan's row: one item a line. */
export const linesOfRow = (content: string): string[] => content.split('\n').filter((line) => line !== '');

async function* after(bytes: AsyncIterable<Uint8Array>, offset: number): AsyncIterable<Uint8Array> {
  let skip = offset;
  for await (const chunk of bytes) {
    if (skip >= chunk.byteLength) skip -= chunk.byteLength;
    else {
      yield skip === 0 ? chunk : chunk.subarray(skip);
      skip = 0;
    }
  }
}
