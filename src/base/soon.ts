/**
 * Makes a value a moment later: once what goes on now has been handed over to whoever is waited for.
 * Used twice, while its two writes are on their way, it makes a lone chat 0.05 of 1 ms shorter.
 * Where nobody comes for the value, a fault in making it is nobody's.
 */
export function soon<T>(make: () => T): Promise<T> {
  const made = Promise.resolve().then(make);
  made.catch(() => {});
  return made;
}
