import type { Key, Kv, Row, Write } from "../../src/store/kv.ts";

/** A store that fails as a test defines; otherwise it is the real one. */
export interface ScriptedStore {
  /** For `createWorld({ wrapKv })`. */
  wrap(kv: Kv): Kv;
  /** Refuses every call, as for a process that has died or lost its network. */
  dead: boolean;
  /** Replaces an atomic write; `real` is the store's own. */
  atomic: ((write: Write, real: (write: Write) => Promise<string | null>) => Result) | null;
  /** Replaces a read, for each of its keys. */
  get: ((key: Key, real: (key: Key) => Promise<Row>) => Promise<Row>) | null;
  /** Every atomic write that was requested, in order. */
  writes: Write[];
}

type Result = Promise<string | null>;

export function createScriptedStore(): ScriptedStore {
  const store: ScriptedStore = {
    dead: false,
    atomic: null,
    get: null,
    writes: [],
    wrap: (kv) => ({
      limits: kv.limits,
      async get(key) {
        mustLive();
        return await (store.get ? store.get(key, kv.get) : kv.get(key));
      },
      async getMany(keys) {
        mustLive();
        const { get } = store;
        if (!get) return await kv.getMany(keys);
        return await Promise.all(keys.map((key) => get(key, kv.get)));
      },
      async list(options) {
        mustLive();
        return await kv.list(options);
      },
      async atomic(write) {
        mustLive();
        store.writes.push(write);
        return await (store.atomic ? store.atomic(write, kv.atomic) : kv.atomic(write));
      },
      close: () => kv.close(),
    }),
  };
  function mustLive(): void {
    if (store.dead) throw new TypeError("error sending request: connection refused");
  }
  return store;
}

/** A gate that stays closed until it is opened: to hold a write back. */
export function createGate(): { opened: Promise<void>; open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: resolve };
}
