/**
 * Computes a value once for each object and drops it with the object, which must not change.
 */
export function memoizeByObject<K extends object, V>(work: (key: K) => V): (key: K) => V {
  const known = new WeakMap<K, { value: V }>();
  return (key) => {
    const found = known.get(key);
    if (found) return found.value;
    const value = work(key);
    known.set(key, { value });
    return value;
  };
}
