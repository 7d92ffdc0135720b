#!/usr/bin/env node
// The `sonar` command: src/main.ts on the project's own Node.
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
process.argv.splice(2, 0, join(root, 'src', 'main.ts'));
await import('./run.mjs');
