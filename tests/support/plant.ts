/** A fault of ours that happens once, when it is armed. */
interface Plant extends Disposable {
  isArmed: boolean;
  hasThrown: boolean;
}

interface PlantOptions {
  /** A method of what the method returns, which throws in its place. */
  within?: string | undefined;
  /** Whether this is where it throws, and not work beside it; by default, everywhere. */
  isHere?: () => boolean;
}

/** Has a method throw. */
export function plant(
  target: object,
  name: string,
  { within, isHere = () => true }: PlantOptions = {},
): Plant {
  const methods = target as Record<string, unknown>;
  const original = methods[name];
  const state = { isArmed: false, hasThrown: false };
  const isDue = () => state.isArmed && !state.hasThrown && isHere() && (state.hasThrown = true);
  const fault = () => new TypeError(`planted in ${within ?? name}`);
  methods[name] = function (this: unknown, ...given: unknown[]) {
    if (!within && isDue()) throw fault();
    const made = (original as (...given: unknown[]) => unknown).apply(this, given);
    if (!within) return made;
    return new Proxy(made as object, {
      get(object, member) {
        const value = Reflect.get(object, member, object);
        if (typeof value !== "function") return value;
        return (...args: unknown[]) => {
          if (member === within && isDue()) throw fault();
          return value.apply(object, args);
        };
      },
    });
  };
  return Object.assign(state, { [Symbol.dispose]: () => void (methods[name] = original) });
}
