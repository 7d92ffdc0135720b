import { isAbsolute, join, relative } from 'node:path';
import fc from 'fast-check';
import { attemptFolders, pathProblem, resolveArgument } from '#sonar/worker/paths.ts';

const folders = attemptFolders('/disk', 'attempt');

test.each([
  ['', 'is empty'],
  ['/etc/passwd', 'is absolute'],
  ['..', 'segment ".."'],
  ['a/../../b', 'segment ".."'],
  ['a//b', 'segment ""'],
  ['a/', 'segment ""'],
  ['./a', 'segment "."'],
  ['a\0b', 'NUL'],
  ['bad\uFFFDname', 'UTF-8'],
  ['x'.repeat(1025), 'longer than 1024'],
  [Array.from({ length: 5 }, () => '漢'.repeat(80)).join('/'), 'longer than 1024 bytes'],
  ['é'.repeat(128), 'more than 255 bytes'],
])('the path %j is refused', (path, problem) => {
  expect(pathProblem(path)).toContain(problem);
});

test('a path that is taken never leaves its folder', () => {
  const text = fc.string({ unit: fc.constantFrom('.', '/', '\\', 'a', ' ', '\n', '\0', '~', '-') });
  fc.assert(
    fc.property(text, (path) => {
      if (pathProblem(path) !== null) return;
      const inside = relative('/disk/attempt/out', join('/disk/attempt/out', path));
      expect(inside).not.toBe('');
      expect(inside.split('/')[0]).not.toBe('..');
      expect(isAbsolute(inside)).toBe(false);
    }),
  );
});

test('parts of one argument are joined without a gap, and paths are local', () => {
  const outputs = [{ name: 'report', path: 'a/report.xml', optional: false }];
  const inputs = new Map([['hosts', '/disk/attempt/in/hosts/h.txt']]);
  const argument = [
    { kind: 'text' as const, text: '--in=' },
    { kind: 'in' as const, name: 'hosts' },
    { kind: 'text' as const, text: ',--out=' },
    { kind: 'out' as const, name: 'report' },
  ];
  expect(resolveArgument(argument, outputs, folders, inputs)).toEqual({
    text: '--in=/disk/attempt/in/hosts/h.txt,--out=/disk/attempt/out/a/report.xml',
  });
});

test('what a part names must be there', () => {
  const stdout = [{ name: 'records', path: null, optional: false }];
  expect(resolveArgument([{ kind: 'in', name: 'x' }], stdout, folders, new Map())).toHaveProperty('problem');
  expect(resolveArgument([{ kind: 'out', name: 'records' }], stdout, folders, new Map())).toHaveProperty(
    'problem',
  );
  expect(resolveArgument([{ kind: 'text', text: 'a\0b' }], stdout, folders, new Map())).toHaveProperty(
    'problem',
  );
});
