// Work is counted, not timed: what is looked at character by character, and what a pattern may cost at worst, which is
// the square of a text that it can begin on anywhere.
export async function workOf(run: () => Promise<unknown>, limit: number): Promise<number> {
  const { charAt } = String.prototype;
  const { exec } = RegExp.prototype;
  let work = 0;
  const add = (amount: number): void => {
    work += amount;
    if (work > limit) throw new Error('more work than the limit');
  };
  String.prototype.charAt = function (this: string, at: number) {
    add(1);
    return charAt.call(this, at);
  };
  RegExp.prototype.exec = function (this: RegExp, text: string) {
    add(this.sticky ? 1 : mayBeSquare(this.source) ? text.length ** 2 : text.length);
    return exec.call(this, text);
  };
  try {
    await run();
  } finally {
    String.prototype.charAt = charAt;
    RegExp.prototype.exec = exec;
  }
  return work;
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
