import { readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { checkout, inCheckout } from '../checkout.ts';
import { failed, judge, type Outcome } from './step.ts';
import { run } from './tool.ts';

/** Histories and locks can be large; a text past this size is data. */
const largestTextBytes = 4 * 1024 * 1024;

/** What would tie the tree to the machine or the mirror where it was written. */
const forbidden: readonly [what: string, pattern: RegExp][] = [
  ['a path of one machine', /(?<![\w.])\/(?:work|farm|root)\/[a-z.]/],
  [
    'a registry host',
    /\b(?:registry\.(?:npmjs|yarnpkg)|(?:files\.)?pythonhosted|pypi)\.(?:org|com)\b|\bproxy\.golang\.org\b/,
  ],
  ['a merge conflict', /^(?:<{7}|>{7}) /],
  ...[checkout, homedir()]
    .filter((path) => path.split('/').length > 2)
    .map((path): [string, RegExp] => [
      'a path of this machine',
      new RegExp(`${path.replaceAll(/[^\w/]/g, String.raw`\$&`)}(?![\\w-])`),
    ]),
];

/** Every file that is tracked or could be: other machines must be able to use all of them. */
export async function tree(): Promise<Outcome> {
  const listing = await run('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard']);
  if (!listing.ok) return failed(listing.output);
  const files = [...new Set(listing.stdout.split('\0'))].filter((file) => file !== '' && isText(file));
  return judge(files.flatMap(complaints), `${files.length} files`);
}

function isText(file: string): boolean {
  const stat = statSync(inCheckout(file), { throwIfNoEntry: false });
  return stat?.isFile() === true && stat.size <= largestTextBytes;
}

function complaints(file: string): string[] {
  const text = readFileSync(inCheckout(file), 'utf8');
  if (text.includes('\0')) return [];
  return text
    .split('\n')
    .flatMap((line, index) =>
      forbidden
        .filter(([, pattern]) => pattern.test(line))
        .map(([what]) => `${file}:${index + 1} holds ${what}: ${line.trim().slice(0, 100)}`),
    );
}
