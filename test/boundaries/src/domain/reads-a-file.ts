// forbidden: pure-folders-touch-no-outside
import { readFileSync } from 'node:fs';

export const read = readFileSync;
