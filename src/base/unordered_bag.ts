/**
 * An unordered collection for items that live as long as a request. A Map or a Set that changes
 * with every request leaves tables behind that keep old items alive until a full garbage
 * collection.
 */
export class UnorderedBag<T> implements Iterable<T> {
  readonly #items: { value: T; at: number }[] = [];

  get size(): number {
    return this.#items.length;
  }

  /** Adds an item; the returned function removes it. */
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

  /** Iterates over the items present now; changes during the iteration have no effect. */
  [Symbol.iterator](): Iterator<T> {
    return this.#items.map(({ value }) => value)[Symbol.iterator]();
  }
}
