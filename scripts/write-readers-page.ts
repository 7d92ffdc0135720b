// `node scripts/write-readers-page.ts`: writes docs/readers.md anew.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { inCheckout } from './checkout.ts';
import { readersPage } from './readers-page.ts';

const page = await readersPage((file) => readFileSync(inCheckout('test', 'fixtures', 'readers', file)));
mkdirSync(inCheckout('docs'), { recursive: true });
writeFileSync(inCheckout('docs', 'readers.md'), page);
