/** The first parts of all keys of a module: what rows of the database begin with. */
export function familiesOf(keys: Record<string, unknown>): Set<string> {
  const found = new Set<string>();
  for (const made of Object.values(keys)) {
    // Any arguments will do: the first part never depends on them.
    const key = typeof made === "function"
      ? (made as (...parts: unknown[]) => unknown)(...Array.from({ length: 8 }, () => ["x"]))
      : made;
    if (Array.isArray(key)) found.add(String(key[0]));
  }
  return found;
}
