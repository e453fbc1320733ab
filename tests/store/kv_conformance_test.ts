import assert from "node:assert/strict";
import { denoKv, serverLimits } from "../../src/platform/deno_kv.ts";
import { emptyWrite, type Key, type Kv, type Row, type Write } from "../../src/store/kv.ts";
import { MemoryStore } from "../simulation/memory_store.ts";
import { openPostgres } from "../../src/platform/postgres.ts";
import { findPostgres, startPostgres, waits } from "../support/postgres.ts";
import { mulberry32 } from "../support/random.ts";

// What Farebox relies on in a store. The simulation runs on its own store, which must pass the same
// tests as the real one.

const stores: [string, () => Promise<Kv>][] = [
  ["Deno KV", async () => denoKv(await Deno.openKv(":memory:"))],
  ["in-process", async () => new MemoryStore().kv],
];

const server = findPostgres() === null ? null : await startPostgres();
if (server) {
  const open = async () =>
    (await openPostgres(await server.newSchema(), { password: null, waits })).kv;
  stores.push(["PostgreSQL", open]);
  globalThis.addEventListener("unload", () => server.discard());
}

// A server of KV Connect, with its token in DENO_KV_ACCESS_TOKEN and an empty database.
const connectUrl = Deno.env.get("KV_CONNECT_URL");
if (connectUrl) {
  stores.push(["KV Connect", async () => {
    const kv = denoKv(await Deno.openKv(connectUrl), serverLimits);
    for (;;) {
      const rows = await kv.list({ prefix: [], limit: 500 });
      if (rows.length === 0) return kv;
      await kv.atomic({ ...emptyWrite(), deletes: rows.map(({ key }) => key) });
    }
  }]);
}

/** One promise, for every store, or for those with the limits of Deno KV. */
function promise(
  text: string,
  keep: (kv: Kv) => Promise<void>,
  { of = stores.map(([name]) => name) }: { of?: readonly string[] } = {},
): void {
  for (const [name, open] of stores.filter(([name]) => of.includes(name))) {
    Deno.test(`${name}: ${text}`, async () => {
      const kv = await open();
      await keep(kv);
      kv.close();
    });
  }
}

const bytes = (text: string) => new TextEncoder().encode(text);
const textOf = (row: Row | undefined) => row?.value && new TextDecoder().decode(row.value);
const write = (some: Partial<Write>): Write => ({ ...emptyWrite(), ...some });
const set = (key: Key, value = "x") => ({ key, value: bytes(value) });

async function fill(kv: Kv, keys: readonly Key[]): Promise<void> {
  for (const key of keys) assert.ok(await kv.atomic(write({ sets: [set(key)] })));
}

promise("what is not there has neither value nor version", async (kv) => {
  assert.deepEqual(await kv.get(["a", 1]), { key: ["a", 1], value: null, version: null });
  const rows = await kv.getMany([["a"], ["b"]]);
  assert.deepEqual(rows.map(({ value, version }) => [value, version]), [[null, null], [
    null,
    null,
  ]]);
});

promise("a write gives all of its rows one new version, and later ones a greater", async (kv) => {
  const first = await kv.atomic(write({ sets: [set(["a"], "1"), set(["b"], "2")] }));
  const second = await kv.atomic(write({ sets: [set(["a"], "3")] }));
  const [a, b] = await kv.getMany([["a"], ["b"]]);
  assert.ok(first && second && first < second && first.length === second.length);
  assert.deepEqual([textOf(a), a?.version, textOf(b), b?.version], ["3", second, "2", first]);
});

promise("a failed check writes nothing, whichever it is", async (kv) => {
  const version = await kv.atomic(write({ sets: [set(["a"], "1")] }));
  for (const wrong of [null, "00000000000000000000"]) {
    const checks = [{ key: ["b"], version: null }, { key: ["a"], version: wrong }];
    assert.equal(await kv.atomic(write({ checks, sets: [set(["c"])], deletes: [["a"]] })), null);
  }
  assert.equal((await kv.get(["a"])).version, version);
  assert.equal((await kv.get(["c"])).version, null);
  const checks = [{ key: ["a"], version }];
  assert.ok(await kv.atomic(write({ checks, sets: [set(["a"], "2")] })));
  assert.equal(await kv.atomic(write({ checks, sets: [set(["a"], "3")] })), null);
});

promise("a key that was deleted is as one that never was", async (kv) => {
  await kv.atomic(write({ sets: [set(["a"])] }));
  assert.ok(await kv.atomic(write({ deletes: [["a"], ["never"]] })));
  assert.equal((await kv.get(["a"])).version, null);
  assert.ok(
    await kv.atomic(write({ checks: [{ key: ["a"], version: null }], sets: [set(["a"])] })),
  );
});

promise("of two sets of a key the last counts, and a delete beats both", async (kv) => {
  await kv.atomic(
    write({ sets: [set(["a"], "1"), set(["a"], "2"), set(["b"])], deletes: [["b"]] }),
  );
  assert.equal(textOf(await kv.get(["a"])), "2");
  assert.equal((await kv.get(["b"])).value, null);
});

promise("an empty write lands", async (kv) => {
  assert.ok(await kv.atomic(emptyWrite()));
});

promise("what is stored is a copy", async (kv) => {
  const value = bytes("1");
  await kv.atomic(write({ sets: [{ key: ["a"], value }] }));
  value[0] = 0;
  const row = await kv.get(["a"]);
  row.value?.fill(0);
  assert.equal(textOf(await kv.get(["a"])), "1");
});

const ordered: Key[] = [
  [""],
  ["\u0000"],
  ["\u0000", 1],
  ["\u0001"],
  ["a"],
  ["a", ""],
  ["a", "\u0000b"],
  ["a", "b"],
  ["a", "b", "c"],
  ["a", "bb"],
  ["a", "é"],
  ["a", "\uffee"],
  ["a", "𝄞"],
  ["a", -Infinity],
  ["a", -1.5],
  ["a", -1],
  ["a", 0],
  ["a", Number.MIN_VALUE],
  ["a", 1],
  ["a", 1, "x"],
  ["a", 2],
  ["a", 1_767_225_600_000],
  ["a", Infinity],
  ["aa"],
  ["b"],
  [1],
  [1, "a"],
  [2],
];

promise("keys are ordered by their parts: text by its UTF-8, then numbers by size", async (kv) => {
  const shuffled = ordered.map((key, at) => ({ key, by: (at * 7919) % 31 }))
    .sort((one, other) => one.by - other.by).map(({ key }) => key);
  await fill(kv, shuffled);
  const list = async (reverse: boolean) =>
    (await kv.list({ prefix: [], limit: 1_000, reverse })).map(({ key }) => key);
  assert.deepEqual(await list(false), ordered);
  assert.deepEqual(await list(true), ordered.toReversed());
});

promise("a prefix is of whole parts, and not itself listed", async (kv) => {
  await fill(kv, ordered);
  const rows = await kv.list({ prefix: ["a"], limit: 1_000 });
  const under = ordered.filter((key) => key[0] === "a" && key.length > 1);
  assert.deepEqual(rows.map(({ key }) => key), under);
});

promise("a listing goes from its start, up to before its end, as far as its limit", async (kv) => {
  const keys = Array.from({ length: 700 }, (_, n): Key => ["row", n]);
  for (let at = 0; at < keys.length; at += 100) {
    await kv.atomic(write({ sets: keys.slice(at, at + 100).map((key) => set(key)) }));
  }
  const list = async (options: { start?: Key; end?: Key; reverse?: boolean; limit?: number }) =>
    (await kv.list({ prefix: ["row"], limit: 2_000, ...options })).map(({ key }) => Number(key[1]));
  const numbers = (from: number, until: number) => keys.map((_, n) => n).slice(from, until);
  assert.deepEqual(await list({}), numbers(0, 700));
  assert.deepEqual(await list({ start: ["row", 690] }), numbers(690, 700));
  assert.deepEqual(await list({ end: ["row", 3] }), numbers(0, 3));
  assert.deepEqual(await list({ start: ["row", 3], end: ["row", 6] }), [3, 4, 5]);
  assert.deepEqual(await list({ start: ["row", 3.5], end: ["row", 6], limit: 1 }), [4]);
  assert.deepEqual(await list({ end: ["row", 6], reverse: true, limit: 2 }), [5, 4]);
  assert.deepEqual(await list({ start: ["row", 698], reverse: true }), [699, 698]);
  assert.deepEqual(await list({ start: ["row", 3], end: ["row", 3] }), []);
});

promise("a listing's start and end are under its prefix, and in order", async (kv) => {
  const list = (start: Key | undefined, end?: Key) =>
    kv.list({ prefix: ["a"], limit: 1, ...(start ? { start } : {}), ...(end ? { end } : {}) });
  await assert.rejects(list(["b", 1]), /Start key is not in the keyspace defined by prefix/);
  await assert.rejects(list(undefined, ["b", 1]), /End key is not in the keyspace/);
  await assert.rejects(list(["a", 2], ["a", 1]), /Start key is greater than end key/);
  await assert.rejects(kv.list({ prefix: ["a"], limit: 0 }), /Limit must be a positive integer/);
});

promise("more reads at once than one call of Deno KV takes", async (kv) => {
  const keys = Array.from({ length: 35 }, (_, n): Key => ["row", n]);
  await kv.atomic(write({ sets: keys.map((key, n) => set(key, `${n}`)) }));
  const rows = await kv.getMany([...keys, ["none"]]);
  assert.deepEqual(rows.map(textOf), [...keys.map((_, n) => `${n}`), null]);
});

promise("limits of keys", async (kv) => {
  assert.ok(await kv.atomic(write({ sets: [set(["k".repeat(2046)])] })));
  const tooLong: Key = ["k".repeat(2047)];
  await assert.rejects(kv.atomic(write({ sets: [set(tooLong)] })), /Key too large for write/);
  await assert.rejects(kv.atomic(write({ deletes: [tooLong] })), /Key too large for write/);
  await assert.rejects(kv.get(tooLong), /Key too large for read/);
  assert.ok(await kv.atomic(write({ sets: [set(["\u0000".repeat(1023)])] })));
  const doubled: Key = ["\u0000".repeat(1024)];
  await assert.rejects(kv.atomic(write({ sets: [set(doubled)] })), /Key too large for write/);
  await assert.rejects(kv.atomic(write({ sets: [set([])] })), /key cannot be empty/);
  assert.equal((await kv.get([])).version, null);
});

promise("limits of one atomic write", async (kv) => {
  const rows = (count: number) => Array.from({ length: count }, (_, n) => set(["row", n]));
  const checks = (count: number) => rows(count).map(({ key }) => ({ key, version: null }));
  assert.ok(await kv.atomic(write({ checks: checks(100) })));
  await assert.rejects(kv.atomic(write({ checks: checks(101) })), /Too many checks \(max 100\)/);
  assert.ok(await kv.atomic(write({ sets: rows(999), deletes: [["none"]] })));
  await assert.rejects(
    kv.atomic(write({ sets: rows(999), deletes: [["none"], ["too"]] })),
    /Too many mutations \(max 1000\)/,
  );
}, { of: ["Deno KV", "in-process"] });

promise("limits of values", async (kv) => {
  const value = new Uint8Array(65_536).fill(7);
  assert.ok(await kv.atomic(write({ sets: [{ key: ["large"], value }] })));
  assert.deepEqual((await kv.get(["large"])).value, value);
  await assert.rejects(
    kv.atomic(write({ sets: [{ key: ["large"], value: new Uint8Array(65_537) }] })),
    /Value too large \(max 65536 bytes\)/,
  );
});

promise(
  "limits of the bytes of one atomic write, keys counted as Deno KV counts them",
  async (kv) => {
    // 12 of 65,536 bytes under keys of 3 bytes, counted twice; then the rest for one more.
    const large = (count: number) =>
      Array.from({ length: count }, (_, n) => ({
        key: [String.fromCharCode(97 + n)],
        value: new Uint8Array(65_536),
      }));
    const left = 819_200 - 12 * (65_536 + 6);
    const last = (length: number) => ({ key: ["z"], value: new Uint8Array(length) });
    assert.ok(await kv.atomic(write({ sets: [...large(12), last(left - 6)] })));
    const over = write({ sets: [...large(12), last(left - 5)] });
    await assert.rejects(kv.atomic(over), /Total mutation size too large \(max 819200 bytes\)/);
    const checked = write({
      checks: [{ key: ["none"], version: null }],
      sets: [...large(12), last(left - 6)],
    });
    await assert.rejects(kv.atomic(checked), /Total mutation size too large/);
    // At most 40 keys of 2,048 bytes fit; deletes do not count.
    const long = (count: number) =>
      Array.from({ length: count }, (_, n) => set([`${n}`.padStart(2046, "k")]));
    assert.ok(await kv.atomic(write({ sets: long(40), deletes: [["d".repeat(2000)]] })));
    await assert.rejects(
      kv.atomic(write({ sets: [...long(40), set(["a"])] })),
      /Total key size too large \(max 81920 bytes\)/,
    );
  },
  { of: ["Deno KV", "in-process"] },
);

for (const [name, open] of stores) {
  Deno.test(`${name}: after close every call fails`, async () => {
    const kv = await open();
    kv.close();
    await assert.rejects(async () => await kv.get(["a"]));
    await assert.rejects(async () => await kv.atomic(write({ sets: [set(["a"])] })));
  });
}

Deno.test("in-process: the number of checks is a setting, as for a denokv server", async () => {
  const { kv } = new MemoryStore({ checks: 10 });
  const checks = Array.from({ length: 11 }, (_, n) => ({ key: ["row", n], version: null }));
  assert.ok(await kv.atomic(write({ checks: checks.slice(1) })));
  await assert.rejects(kv.atomic(write({ checks })), /Too many checks \(max 10\)/);
});

/** Few keys, so that writes conflict. */
function randomKey(random: () => number): Key {
  const parts = ["a", "b", "\u0000", "é", "", 0, -1, 1, 2.5];
  const part = () => parts[Math.floor(random() * parts.length)] ?? "a";
  return Array.from({ length: 1 + Math.floor(random() * 3) }, part);
}

for (const [name, open] of stores.slice(1)) {
  Deno.test(`${name}: the same results as Deno KV for the same calls`, async () => {
    const random = mulberry32(20_261_121);
    const upTo = (n: number) => Math.floor(random() * n);
    const real = denoKv(await Deno.openKv(":memory:"));
    const own = await open();
    // Versions differ between stores: the same write has the same position in both.
    const places = { real: new Map<string, number>(), own: new Map<string, number>() };
    const versions: { real: string | null; own: string | null }[] = [{ real: null, own: null }];
    const seen = (store: "real" | "own") => ({ key, value, version }: Row) => [
      key,
      value && [...value],
      version && places[store].get(version),
    ];

    for (let round = 0; round < 1_500; round++) {
      const chosen = Array.from({ length: 1 + upTo(3) }, () => randomKey(random));
      const before = await real.getMany(chosen);
      const mine = await own.getMany(chosen);
      assert.deepEqual(mine.map(seen("own")), before.map(seen("real")), `round ${round}: getMany`);

      const checks = chosen.slice(0, upTo(3)).map((key, at) => {
        const stale = upTo(8) === 0 ? versions[upTo(versions.length)] : undefined;
        return {
          key,
          real: stale ? stale.real : before[at]?.version ?? null,
          own: stale ? stale.own : mine[at]?.version ?? null,
        };
      });
      const sets = chosen.slice(0, upTo(3)).map((key) => set(key, `${round}`));
      const deletes = upTo(3) === 0 ? [randomKey(random)] : [];
      const asked = (store: "real" | "own") => ({
        checks: checks.map((check) => ({ key: check.key, version: check[store] })),
        sets,
        deletes,
      });
      const landed = {
        real: await real.atomic(asked("real")),
        own: await own.atomic(asked("own")),
      };
      assert.equal(landed.own === null, landed.real === null, `round ${round}: atomic`);
      if (landed.real !== null) {
        places.real.set(landed.real, round);
        places.own.set(landed.own ?? "", round);
        versions.push(landed);
      }

      const prefix = randomKey(random).slice(0, upTo(2));
      const bound = () => [...prefix, ...randomKey(random)];
      const options = {
        prefix,
        limit: 1 + upTo(20),
        reverse: upTo(2) === 0,
        ...(upTo(3) === 0 ? { start: bound() } : {}),
        ...(upTo(3) === 0 ? { end: bound() } : {}),
      };
      const list = (kv: Kv, store: "real" | "own") =>
        kv.list(options).then((rows) => rows.map(seen(store)), String);
      const about = `round ${round}: ${JSON.stringify(options)}`;
      assert.deepEqual(await list(own, "own"), await list(real, "real"), about);
    }
    real.close();
    own.close();
  });
}
