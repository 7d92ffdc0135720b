// Readers take a chunk without letting go of the thread, and a file that is in memory already would be taken from its
// first byte to its last so: meanwhile no lease of this process is renewed. So a source is given in slices, and between
// two of them all timers and sockets of the process have their turn.
import { setImmediate as turnOfOthers } from 'node:timers/promises';

/** What the dearest bytes cost some hundred milliseconds to read. */
export const sliceBytes = 65_536;

export async function* paced(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let sinceTurn = 0;
  for await (const chunk of bytes) {
    for (let at = 0; at < chunk.byteLength; at += sliceBytes) {
      const slice = chunk.subarray(at, at + sliceBytes);
      if (sinceTurn + slice.byteLength > sliceBytes) {
        await turnOfOthers();
        sinceTurn = 0;
      }
      sinceTurn += slice.byteLength;
      yield slice;
    }
  }
}
