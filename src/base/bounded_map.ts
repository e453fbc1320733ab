/** What a bounded map does besides being one. */
interface Forgetting<V> {
  /** Whether a value is of no more use: such ones are forgotten first. */
  isOver?: (value: V) => boolean;
  /** Called for each value that is forgotten because the map is full. */
  onForgotten?: (value: V) => void;
}

/**
 * A map in bounded memory. When it is full, a new key makes it forget a sixteenth of its entries:
 * those that were set longest ago. Reading is what it is in any map, and moves nothing.
 */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly #max: number;
  readonly #isOver: Forgetting<V>["isOver"];
  readonly #onForgotten: Forgetting<V>["onForgotten"];

  /** `max` is the most entries. */
  constructor(max: number, { isOver, onForgotten }: Forgetting<V> = {}) {
    super();
    this.#max = max;
    this.#isOver = isOver;
    this.#onForgotten = onForgotten;
  }

  /** Sets the value of a key, which is then the newest one. */
  override set(key: K, value: V): this {
    if (!this.delete(key) && this.size >= this.#max) this.#makeRoom();
    return super.set(key, value);
  }

  /** The value of a key; where it has none, one is made and set. */
  getOrMake(key: K, make: (key: K) => V): V {
    const found = this.get(key);
    if (found !== undefined) return found;
    const made = make(key);
    this.set(key, made);
    return made;
  }

  /** Several at once: to find the oldest in a map, all that were deleted before are passed over. */
  #makeRoom(): void {
    if (this.#isOver) {
      for (const [key, value] of this) if (this.#isOver(value)) this.#forget(key, value);
    }
    const kept = Math.floor(this.#max * 15 / 16);
    for (const [key, value] of this) {
      if (this.size <= kept) return;
      this.#forget(key, value);
    }
  }

  #forget(key: K, value: V): void {
    this.delete(key);
    this.#onForgotten?.(value);
  }
}
