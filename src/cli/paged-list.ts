import { SonarError } from '#sonar/platform/errors.ts';

export interface Page<Item> {
  items: Item[];
  next: string | null;
}

/** The most that the API gives at once. */
const pageLimit = 1000;

/** A list of the API: one page, the first so many, or all of it item by item. `Whole`: what a page has beside them. */
export class PagedList<Filter, Item, Whole extends Page<Item> = Page<Item>> {
  readonly #fetch: (filter: Filter, after: string | null, limit: number) => Promise<Whole>;

  constructor(fetch: (filter: Filter, after: string | null, limit: number) => Promise<Whole>) {
    this.#fetch = fetch;
  }

  /** Up to `limit` items over as many pages as that takes; `next` goes on after the last of them. */
  async take(filter: Filter, limit: number, after: string | null = null): Promise<Whole> {
    const items: Item[] = [];
    let page: Whole;
    let next = after;
    do {
      page = await this.#page(filter, next, Math.min(pageLimit, limit - items.length));
      for (const item of page.items) items.push(item);
      next = page.next;
    } while (next !== null && items.length < limit);
    return { ...page, items, next };
  }

  /** Every item; a page is asked for when the one before is used up. */
  async *each(filter: Filter): AsyncGenerator<Item, void, undefined> {
    for await (const page of this.pages(filter)) yield* page.items;
  }

  /** Every page, some of which may be empty. It ends with the one that has no next, or it throws. */
  async *pages(filter: Filter): AsyncGenerator<Whole, void, undefined> {
    let next: string | null = null;
    do {
      const page: Whole = await this.#page(filter, next, pageLimit);
      yield page;
      next = page.next;
    } while (next !== null);
  }

  async #page(filter: Filter, after: string | null, limit: number): Promise<Whole> {
    const page = await this.#fetch(filter, after, limit);
    if (page.next !== null && page.next === after)
      throw new SonarError(
        'internal',
        'the API gave the same page of a list twice; report this with the version of the api',
      );
    return page;
  }
}
