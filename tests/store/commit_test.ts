import assert from "node:assert/strict";
import { ApiError } from "../../src/base/errors.ts";
import type { Committer } from "../../src/store/commit.ts";
import { commitMarkersPrefix } from "../../src/store/keys.ts";
import type { Key, Write } from "../../src/store/kv.ts";
import { createGate, createScriptedStore, type ScriptedStore } from "../support/store.ts";
import { settle } from "../support/clock.ts";
import { createWorld, type World } from "../support/world.ts";

const text = (value: string) => new TextEncoder().encode(value);

function set(key: Key, value: string | Uint8Array, version?: string | null): Write {
  const bytes = typeof value === "string" ? text(value) : value;
  const checks = version === undefined ? [] : [{ key, version }];
  return { checks, sets: [{ key, value: bytes }], deletes: [] };
}

async function openStore(): Promise<World & { store: ScriptedStore; committer: Committer }> {
  const store = createScriptedStore();
  const world = await createWorld({ wrapKv: store.wrap });
  store.writes.length = 0;
  return Object.assign(world, { store, committer: world.deps.committer });
}

async function read(world: World, key: Key): Promise<string | null> {
  const { value } = await world.deps.kv.get(key);
  return value && new TextDecoder().decode(value);
}

const isMarkerOnly = ({ sets, checks }: Write) => sets.length === 1 && checks.length === 1;

/** Takes nothing but markers. */
const refusing: ScriptedStore["atomic"] = (write, real) =>
  isMarkerOnly(write) ? real(write) : Promise.reject(new TypeError("connection refused"));

const never = () => new Promise<never>(() => {});

/** A write that has ended, or has not. */
async function stateOf(write: Promise<unknown>): Promise<string> {
  const ended = write.then(() => "landed", (error) => error.code);
  await settle();
  return await Promise.race([ended, Promise.resolve("waiting")]);
}

Deno.test("commit: a store that does not answer is waited for 5 s by each, however many wait", async () => {
  using world = await openStore();
  world.store.atomic = never;
  world.store.get = never;
  const first = world.committer.commit(set(["row", 1], "x"));
  await world.clock.advance(3_000);
  const second = world.committer.commit(set(["row", 2], "x"));
  await world.clock.advance(1_990);
  assert.deepEqual([await stateOf(first), await stateOf(second)], ["waiting", "waiting"]);
  await world.clock.advance(10);
  const away = "store_unavailable";
  assert.deepEqual([await stateOf(first), await stateOf(second)], [away, away]);
  world.store.atomic = null;
  world.store.get = null;
  await world.clock.advance(30_000);
  assert.equal(await read(world, ["row", 2]), null, "what was not sent is not written later");
  assert.notEqual(await world.committer.commit(set(["row", 3], "x")), null);
});

/** Delays the next write until the gate opens, so that later writes gather. */
function holdBack(store: ScriptedStore) {
  const gate = createGate();
  store.atomic = async (write, real) => {
    store.atomic = null;
    await gate.opened;
    return await real(write);
  };
  return gate;
}

Deno.test("commit: writes that arrive during another one are combined into one atomic write", async () => {
  using world = await openStore();
  const gate = holdBack(world.store);
  const first = world.committer.commit(set(["row", 0], "0"));
  const others = Array.from(
    { length: 50 },
    (_, n) => world.committer.commit(set(["row", n + 1], "x")),
  );
  gate.open();
  assert.notEqual(await first, null);
  const versions = await Promise.all(others);
  assert.equal(world.store.writes.length, 2);
  assert.equal(new Set(versions).size, 1, "one write, one version");
  for (let n = 1; n <= 50; n++) assert.equal(await read(world, ["row", n]), "x");
  await world.committer.idle();
});

Deno.test("commit: an idle store gets a write at once, on its own", async () => {
  using world = await openStore();
  for (let n = 0; n < 3; n++) await world.committer.commit(set(["row", n], "x"));
  assert.equal(world.store.writes.length, 3);
});

Deno.test("commit: a failed check affects only its own member", async () => {
  using world = await openStore();
  const version = await world.committer.commit(set(["row", "stale"], "old"));
  await world.committer.commit(set(["row", "stale"], "new"));
  const gate = holdBack(world.store);
  const first = world.committer.commit(set(["row", "first"], "x"));
  const members = [
    world.committer.commit(set(["row", "a"], "x")),
    world.committer.commit(set(["row", "stale"], "lost", version)),
    world.committer.commit(set(["row", "b"], "x", null)),
  ];
  gate.open();
  await first;
  const [a, stale, b] = await Promise.all(members);
  assert.notEqual(a, null);
  assert.equal(stale, null);
  assert.notEqual(b, null);
  assert.equal(await read(world, ["row", "a"]), "x");
  assert.equal(await read(world, ["row", "stale"]), "new");
  assert.equal(await read(world, ["row", "b"]), "x");
});

Deno.test("commit: one invalid member, too large for the store, does not affect others", async () => {
  using world = await openStore();
  const gate = holdBack(world.store);
  const first = world.committer.commit(set(["row", "first"], "x"));
  const large = world.committer.commit(set(["row", "large"], new Uint8Array(70 * 1024)));
  const good = ["a", "b"].map((name) => world.committer.commit(set(["row", name], "x")));
  const longKey = world.committer.commit(set(["row", "k".repeat(3000)], "x"));
  large.catch(() => {});
  longKey.catch(() => {});
  gate.open();
  await first;
  await assert.rejects(large);
  await assert.rejects(longKey);
  for (const version of await Promise.all(good)) assert.notEqual(version, null);
  assert.equal(await read(world, ["row", "a"]), "x");
  assert.equal(await read(world, ["row", "b"]), "x");
  assert.equal(await read(world, ["row", "large"]), null);
});

/** Ways in which a store can fail one write. */
const failures: Record<string, (store: ScriptedStore) => void> = {
  "lands, and says no": (store) => {
    store.atomic = async (write, real) => {
      store.atomic = null;
      await real(write);
      return null;
    };
  },
  "lands, and throws": (store) => {
    store.atomic = async (write, real) => {
      store.atomic = null;
      await real(write);
      throw new TypeError("connection reset");
    };
  },
  "lands, and throws, as does the question about it": (store) => {
    let failing = 2;
    store.atomic = async (write, real) => {
      if (--failing === 0) store.atomic = null;
      if (!isMarkerOnly(write)) await real(write);
      throw new TypeError("connection reset");
    };
  },
  "lands, and throws, as do two questions about it": (store) => {
    let failing = 3;
    store.atomic = async (write, real) => {
      if (--failing === 0) store.atomic = null;
      if (!isMarkerOnly(write)) await real(write);
      throw new TypeError("connection reset");
    };
  },
  "lands, and answers too late": (store) => {
    store.atomic = async (write, real) => {
      store.atomic = null;
      await real(write);
      throw new ApiError(503, { message: "no answer in time" });
    };
  },
  "lands, says no, and the marker is not read at first": (store) => {
    failures["lands, and says no"]?.(store);
    store.get = () => {
      store.get = null;
      return Promise.reject(new TypeError("connection reset"));
    };
  },
};

for (const [how, fail] of Object.entries(failures)) {
  Deno.test(`commit: a write that ${how} is known to have landed`, async () => {
    using world = await openStore();
    fail(world.store);
    const version = await world.committer.commit(set(["row"], "x", null));
    assert.notEqual(version, null);
    assert.equal(await read(world, ["row"]), "x");
    const next = await world.committer.commit(set(["row"], "y", version));
    assert.notEqual(next, null, "its version is the row's own");
  });

  Deno.test(`commit: 20 deposits whose write ${how} are recorded once each`, async () => {
    using world = await openStore();
    const gate = holdBack(world.store);
    const users = Array.from({ length: 20 }, (_, n) => `user-${n}`);
    const body = (user: string) => ({ body: { user, amount: "1" } });
    const path = "/v1/user/balance/deposit";
    const first = world.json(path, body("first"));
    await settle();
    const work = users.map((user) => world.json(path, body(user)));
    await settle();
    fail(world.store);
    gate.open();
    assert.equal((await first).status, 200);
    const answers = await Promise.all(work);
    for (const [index, user] of users.entries()) {
      const { balance } = await world.balance(user);
      // After a 5xx the caller knows nothing; two deposits would always be wrong.
      const expected = answers[index]?.status === 200 ? ["1"] : ["0", "1"];
      assert.ok(expected.includes(balance), `${user}: ${answers[index]?.status} and ${balance}`);
    }
  });
}

Deno.test("commit: a write that throws and did not land is sent once more", async () => {
  using world = await openStore();
  world.store.atomic = () => {
    world.store.atomic = null;
    return Promise.reject(new TypeError("connection refused"));
  };
  assert.notEqual(await world.committer.commit(set(["row"], "x")), null);
  assert.equal(await read(world, ["row"]), "x");
});

Deno.test("commit: a write that throws twice and did not land is refused, and never lands", async () => {
  using world = await openStore();
  world.store.atomic = refusing;
  await assert.rejects(world.committer.commit(set(["row"], "x")));
  world.store.atomic = null;
  assert.equal(await read(world, ["row"]), null);
  assert.notEqual(await world.committer.commit(set(["row"], "y")), null, "the next one lands");
});

Deno.test("commit: members of a batch that did not land are retried, each alone", async () => {
  using world = await openStore();
  const gate = holdBack(world.store);
  const first = world.committer.commit(set(["row", "first"], "x"));
  const members = ["a", "b"].map((name) => world.committer.commit(set(["row", name], "x", null)));
  await settle();
  world.store.atomic = () => {
    world.store.atomic = null;
    return Promise.reject(new TypeError("connection refused"));
  };
  gate.open();
  await first;
  for (const version of await Promise.all(members)) assert.notEqual(version, null);
  assert.equal(await read(world, ["row", "a"]), "x");
});

Deno.test("commit: members that did not land are retried, also if the fence's own response was lost", async () => {
  using world = await openStore();
  const gate = holdBack(world.store);
  const first = world.committer.commit(set(["row", "first"], "x"));
  const members = ["a", "b"].map((name) => world.committer.commit(set(["row", name], "x", null)));
  await settle();
  let asked = 0;
  world.store.atomic = async (write, real) => {
    if (++asked === 2) world.store.atomic = null;
    if (isMarkerOnly(write)) await real(write);
    throw new TypeError("connection reset");
  };
  gate.open();
  await first;
  for (const version of await Promise.all(members)) assert.notEqual(version, null);
  assert.equal(await read(world, ["row", "a"]), "x");
});

Deno.test("commit: a failed check is reported as that, also if the marker is not readable at first", async () => {
  using world = await openStore();
  await world.committer.commit(set(["row"], "x"));
  world.store.get = () => {
    world.store.get = null;
    return Promise.reject(new TypeError("connection reset"));
  };
  assert.equal(await world.committer.commit(set(["row"], "y", null)), null);
  assert.equal(world.store.get, null);
  assert.equal(await read(world, ["row"]), "x");
});

Deno.test("commit: a landed write that is repeated after later ones changes nothing", async () => {
  using world = await openStore();
  let repeat: () => Promise<string | null> = () => Promise.reject(new Error("never sent"));
  world.store.atomic = async (write, real) => {
    world.store.atomic = null;
    await real(write);
    repeat = () => real(write);
    throw new TypeError("connection reset");
  };
  assert.notEqual(await world.committer.commit(set(["row"], "old")), null);
  for (const value of ["newer", "newest"]) await world.committer.commit(set(["row"], value));
  assert.equal(await repeat(), null);
  assert.equal(await read(world, ["row"]), "newest");
});

Deno.test("commit: a write that lands late, after it was given up, changes nothing", async () => {
  using world = await openStore();
  let late: (() => Promise<string | null>) | null = null;
  world.store.atomic = (write, real) => {
    world.store.atomic = null;
    late = () => real(write);
    return Promise.reject(new ApiError(503, { message: "no answer in time" }));
  };
  await assert.rejects(world.committer.commit(set(["row"], "x")));
  assert.ok(late);
  assert.equal(await (late as () => Promise<string | null>)(), null, "the fence holds");
  assert.equal(await read(world, ["row"]), null);
});

Deno.test("commit: an unavailable store is 503, and is not called forever", async () => {
  using world = await openStore();
  world.store.atomic = () => Promise.reject(new TypeError("connection refused"));
  await assert.rejects(
    world.committer.commit(set(["row"], "x")),
    (error) => error instanceof ApiError && error.status === 503,
  );
  assert.ok(world.store.writes.length <= 5, `${world.store.writes.length} writes`);
  world.store.atomic = null;
  assert.notEqual(await world.committer.commit(set(["row"], "y")), null);
});

Deno.test("commit: an unavailable store is not called again for each waiting write", async () => {
  using world = await openStore();
  const gate = holdBack(world.store);
  const first = world.committer.commit(set(["row", "first"], "x"));
  const others = Array.from({ length: 30 }, (_, n) => world.committer.commit(set(["row", n], "x")));
  const refused = others.map((other) =>
    assert.rejects(other, (error) => error instanceof ApiError && error.status === 503)
  );
  await settle();
  world.store.atomic = () => Promise.reject(new TypeError("connection refused"));
  gate.open();
  await first.catch(() => {});
  await Promise.all(refused);
  assert.ok(world.store.writes.length <= 10, `${world.store.writes.length} writes`);
});

Deno.test("commit: a store that only refuses, after an error, is not called forever", async () => {
  using world = await openStore();
  let asked = 0;
  world.store.atomic = () => {
    if (++asked === 1) return Promise.reject(new TypeError("connection reset"));
    // Far beyond any limit, so that this test ends either way.
    if (asked > 100) world.store.atomic = null;
    return Promise.resolve(null);
  };
  await assert.rejects(world.committer.commit(set(["row"], "x")));
  assert.ok(asked <= 10, `asked ${asked} times`);
});

Deno.test("commit: markers do not accumulate", async () => {
  using world = await openStore();
  for (let n = 0; n < 20; n++) await world.committer.commit(set(["row"], `${n}`));
  const markers = await world.deps.kv.list({ prefix: commitMarkersPrefix, limit: 100 });
  assert.equal(markers.length, 1);
});

Deno.test("commit: markers of a dead process are swept, and no young one", async () => {
  using world = await createWorld();
  using dead = await createWorld({ shareWith: world });
  await dead.deps.committer.commit(set(["row"], "x"));
  await world.app.sweep();
  await world.clock.advance(9 * 60_000);
  await world.app.sweep();
  const count = async () =>
    (await world.deps.kv.list({ prefix: commitMarkersPrefix, limit: 100 })).length;
  assert.equal(await count(), 2);
  await world.clock.advance(2 * 60_000);
  await world.app.sweep();
  assert.equal(await count(), 0);
  assert.notEqual(await world.deps.committer.commit(set(["row"], "y")), null);
});
