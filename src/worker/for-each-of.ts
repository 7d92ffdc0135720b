/**
 * Runs `each` over the items, `atOnce` at a time. The first result that is not null ends it: no further item is
 * begun, those under way are awaited, and that result is returned.
 */
export async function forEachOf<Item, End>(
  items: readonly Item[],
  atOnce: number,
  each: (item: Item) => Promise<End | null>,
): Promise<End | null> {
  let next = 0;
  let end: End | null = null;
  const lane = async () => {
    while (next < items.length && end === null) {
      const item = items[next] as Item;
      next += 1;
      const result = await each(item);
      end ??= result;
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, lane));
  return end;
}
