import assert from "node:assert/strict";
import { loadTokenizer } from "../../src/pricing/tokenizer.ts";
import { repeated } from "../support/call_endings.ts";
import { type CallKind, callKinds } from "../support/call_kinds.ts";
import {
  callEnv,
  callKind,
  chargesOf,
  endingsTold,
  openCallWorld,
  replyTo,
} from "../support/call_world.ts";
import { settle } from "../support/clock.ts";
import { keysUnder, verify } from "../support/verify.ts";
import { createWorld, type World } from "../support/world.ts";

// Loaded before the clock is moved, since loading takes real time.
await loadTokenizer();

/** What another process finds a minute after the death of the one that made the call. */
interface Remains {
  charges: string[];
  events: string[];
  /** Rows of responses and turns that are kept of it. */
  kept: string[];
  held: string;
  key?: string;
  faults: string[];
}

/** Rows that are kept of responses, as `kept_id 2`. */
async function keptRows(world: World): Promise<string[]> {
  const names = ["cached_response", "kept_id", "kept_turn", "kept_by_user"];
  const rows = await Promise.all(names.map((name) => keysUnder(world, [name])));
  return names.flatMap((name, at) => rows[at]?.length ? [`${name} ${rows[at].length}`] : []);
}

/** Makes a call whose process dies right after its n-th write, where it has as many. */
async function callAndDie(kind: CallKind, n: number) {
  using opened = await openCallWorld(kind, {});
  const { world, store } = opened;
  const before = await keptRows(world);
  replyTo(world, kind);
  const died = Promise.withResolvers<void>();
  let written = 0;
  store.dead = n === 0;
  store.atomic = async (write, real) => {
    const version = await real(write);
    if (++written < n) return version;
    store.dead = true;
    died.resolve();
    return version;
  };
  const answered = callKind(world, kind).then(async (response) => {
    await response.text();
    return response.status;
  }).catch(() => 0);
  await Promise.race([answered, died.promise]);
  // What it is doing may go on for a moment.
  await settle();
  const isDead = store.dead;
  const status = await Promise.race([answered, Promise.resolve(0)]);
  using next = await createWorld({ shareWith: world, env: callEnv });
  next.clock.set(61_000);
  await next.app.sweep();
  const kept = await keptRows(next);
  const remains: Remains = {
    charges: await chargesOf(next),
    events: await endingsTold(next),
    kept: kept.filter((row) => !before.includes(row)),
    held: (await next.balance("ada")).held,
    ...(kind.hasKey
      ? { key: await repeated(next, kind, { response: null, text: "", isGone: true }) }
      : {}),
    faults: (await verify(next)).faults,
  };
  return { isDead, status, remains };
}

for (const kind of callKinds) {
  Deno.test(`endings: ${kind.name}, whose process dies between any two writes, is ended wholly`, async () => {
    const whole = await callAndDie(kind, Infinity);
    assert.equal(whole.isDead, false);
    const none = { kept: [], held: "0", ...(kind.hasKey ? { key: "is free" } : {}), faults: [] };
    // All of these or nothing, in this order.
    const possible: Remains[] = [
      { ...none, charges: [], events: [] },
      { ...none, charges: ["expired 0"], events: ["failed hold_expired"] },
      whole.remains,
    ];
    assert.deepEqual(whole.remains.charges, [`usage ${kind.costs.report}`]);
    assert.deepEqual(whole.remains.events, ["completed"]);
    assert.deepEqual(whole.remains.kept, kind.keeps ?? []);
    if (kind.hasKey && kind.gets === "whole") assert.equal(whole.remains.key, "has a 200");
    let least = 0;
    for (let n = 0, isDead = true; isDead; n++) {
      const { status, remains, ...call } = await callAndDie(kind, n);
      const found = possible.findIndex((one) =>
        JSON.stringify(one.charges) === JSON.stringify(remains.charges)
      );
      const at = `${kind.name}, after write ${n}`;
      assert.deepEqual(remains, possible[Math.max(found, 0)], at);
      assert.ok(found >= least, `${at}: an earlier death had more`);
      assert.ok(
        status !== 200 || kind.gets !== "whole" || found === 2,
        `${at}: answered, and free`,
      );
      least = found;
      isDead = call.isDead;
    }
    assert.equal(least, 2);
  });
}
