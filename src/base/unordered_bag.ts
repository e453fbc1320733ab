/**
 * Things that come and go, in no order. A Map or a Set that changes with every request leaves
 * tables behind which keep what was in them alive until the next full garbage collection.
 */
export class UnorderedBag<T> implements Iterable<T> {
  readonly #items: { value: T; at: number }[] = [];

  get size(): number {
    return this.#items.length;
  }

  /** Puts it in; the returned function takes it out again. */
  add(value: T): () => void {
    const items = this.#items;
    const item = { value, at: items.length };
    items.push(item);
    return () => {
      if (items[item.at] !== item) return;
      const last = items.pop();
      if (!last || last === item) return;
      items[item.at] = last;
      last.at = item.at;
    };
  }

  /** Those that are in it now; what comes or goes meanwhile changes nothing. */
  [Symbol.iterator](): Iterator<T> {
    return this.#items.map(({ value }) => value)[Symbol.iterator]();
  }
}
