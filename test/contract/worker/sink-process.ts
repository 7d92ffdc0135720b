// A sink whose disk is full half way through a write: the limit on the size of files stands for it.
import { statSync } from 'node:fs';
import { createStreamSink } from '#sonar/worker/stream-sink.ts';

const path = process.argv[2] as string;
const sink = createStreamSink({ path, capBytes: 1e9, headBytes: 0 });
for (let n = 0; n < 10; n += 1) sink.write(Buffer.alloc(3_000, 'a'));
console.log(JSON.stringify({ end: sink.finish(), onDisk: statSync(path).size }));
