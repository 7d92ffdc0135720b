// Work is counted, not timed: what is looked at character by character, and what a pattern may cost at worst, which is
// the square of a text that it can begin on anywhere.
export async function workOf(run: () => Promise<unknown>, limit: number): Promise<number> {
  let work = 0;
  const add = (amount: number): void => {
    work += amount;
    if (work > limit) throw new Error('more work than the limit');
  };
  const restore = [
    before(String.prototype, 'charAt', () => add(1)),
    before(RegExp.prototype, 'exec', (pattern: RegExp, text: string) =>
      add(pattern.sticky ? 1 : mayBeSquare(pattern.source) ? text.length ** 2 : text.length),
    ),
  ];
  try {
    await run();
  } finally {
    for (const one of restore) one();
  }
  return work;
}

/** Calls `look` before each call of a method, and gives what undoes that. A mock would keep every call. */
function before<Self>(prototype: Self & object, name: string, look: (self: Self, argument: string) => void) {
  const descriptor = Reflect.getOwnPropertyDescriptor(prototype, name) as PropertyDescriptor;
  const method = descriptor.value as (this: Self, ...given: unknown[]) => unknown;
  const value = function (this: Self, ...given: unknown[]): unknown {
    look(this, String(given[0]));
    return Reflect.apply(method, this, given);
  };
  Reflect.defineProperty(prototype, name, { ...descriptor, value });
  return () => void Reflect.defineProperty(prototype, name, descriptor);
}

const known = new Map<string, boolean>();

/** A pattern that holds a repetition and may begin, or end the repetition, anywhere. */
function mayBeSquare(source: string): boolean {
  const before = known.get(source);
  if (before !== undefined) return before;
  known.set(source, false);
  const flat = source.replaceAll(/\\./g, 'x').replaceAll(/\[[^\]]*\]/g, 'x');
  let outer = flat;
  for (let inner = ''; inner !== outer; ) {
    inner = outer;
    outer = inner.replaceAll(/\([^()]*\)/g, (group) =>
      /[+*]\?/.test(group) ? 'x+?' : /[+*]/.test(group) ? 'x+' : 'x',
    );
  }
  const verdict = outer.split('|').some((part) => (part.startsWith('^') ? /[+*]\?./ : /[+*]/).test(part));
  known.set(source, verdict);
  return verdict;
}
