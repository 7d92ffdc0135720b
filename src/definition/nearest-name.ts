/** The candidate that a misspelled name most likely meant, or null when none is near. */
export function nearestName(name: string, candidates: Iterable<string>): string | null {
  let best: { candidate: string; distance: number } | null = null;
  const limit = Math.max(1, Math.floor(name.length / 3));
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - name.length) > limit) continue;
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (distance <= limit && distance < (best?.distance ?? Number.POSITIVE_INFINITY)) {
      best = { candidate, distance };
    }
  }
  return best?.candidate ?? null;
}

/** "did you mean `x`?", or which names there are. */
export function meantHint(name: string, candidates: Iterable<string>): string | null {
  const names = [...candidates];
  const near = nearestName(name, names);
  if (near !== null) return `did you mean \`${near}\`?`;
  return names.length === 0 ? null : `known: ${names.slice(0, 20).join(', ')}`;
}

/** Insertions, deletions, replacements and swaps of neighbours (optimal string alignment). */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const same = a[row - 1] === b[column - 1];
      let cost = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (same ? 0 : 1),
      );
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (swapped) cost = Math.min(cost, (beforeLast[column - 2] ?? 0) + 1);
      current.push(cost);
    }
    beforeLast = last;
    last = current;
  }
  return last[b.length] ?? 0;
}
