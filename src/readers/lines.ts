// Plain lines: one row `{line}` for each that is not blank.

import { safeSample, storableText } from '#sonar/domain/records-storable.ts';
import { linesOf, maxLineBytes } from './line-stream.ts';
import type { Reader } from './reader.ts';
import { draftsOf } from './record-mapping.ts';

export const linesReader: Reader = {
  name: 'lines',
  async *read(bytes, spec) {
    let ordinal = 0;
    let bad = 0;
    for await (const line of linesOf(bytes)) {
      if (line.kind === 'too-long') {
        yield { kind: 'bad', ordinal: bad, reason: tooLong, sample: safeSample(line.sample) };
        bad += 1;
      } else if (line.text.trim() !== '') {
        const row = { line: storableText(line.text) };
        yield { kind: 'row', ordinal, row, records: draftsOf(row, spec) };
        ordinal += 1;
      }
    }
  },
};

export const tooLong = `the line is longer than ${maxLineBytes} bytes`;
