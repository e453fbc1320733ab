import assert from "node:assert/strict";
import { fromBytes, toBytes } from "../../src/base/json.ts";
import type { Key } from "../../src/store/kv.ts";
import { chat } from "./chat.ts";
import { deliver, subscribe } from "./webhooks.ts";
import { adminKey, type Body, createWorld, type World } from "./world.ts";

export const verifyPath = "/v1/admin/verify";

/** All pages of a verification, one after the other, or the first `pagesMax`. */
export async function verify(world: World, query = "", pagesMax = Infinity) {
  const whole = {
    checked: {} as Record<string, number>,
    faults: [] as string[],
    tallies: {} as Record<string, number>,
    until: "",
    pages: 0,
  };
  let path = query === "" ? verifyPath : `${verifyPath}?${query}`;
  for (let cursor: string | null = ""; cursor !== null && whole.pages < pagesMax;) {
    if (cursor !== "") path = `${verifyPath}?cursor=${cursor}`;
    const { status, body } = await world.json(path, { key: adminKey });
    assert.equal(status, 200, JSON.stringify(body));
    for (const [what, count] of Object.entries<number>(body.checked)) {
      whole.checked[what] = (whole.checked[what] ?? 0) + count;
    }
    for (const [owner, more] of Object.entries<number>(body.tallies)) {
      whole.tallies[owner] = (whole.tallies[owner] ?? 0) + more;
    }
    whole.faults.push(...body.faults);
    whole.until = body.until;
    whole.pages++;
    cursor = body.nextCursor;
  }
  return whole;
}

/** Moves money; returns the activity's id. */
export async function move(world: World, path: string, body: Body, key?: string): Promise<string> {
  const headers: Record<string, string> = key === undefined ? {} : { "idempotency-key": key };
  const answer = await world.json(path, { body, headers });
  assert.equal(answer.body.success, true, JSON.stringify(answer.body));
  return answer.body.activityId;
}

/**
 * What a busy project has: its activities by name, and the response to a delivery by event type.
 */
export async function makeBusy(world: World) {
  await subscribe(world, { events: ["balance.*", "proxy.*"] });
  world.subscriber.reply(({ body: { event } }) => {
    if (event.type === "balance.charge.completed") return { status: 503 };
    return { status: event.type === "balance.charge.created" ? 410 : 200 };
  });
  const deposit = (user: string, amount: string, key?: string) =>
    move(world, "/v1/user/balance/deposit", { user, amount, metadata: { n: 1 } }, key);
  const charge = (amount: string, key?: string) =>
    move(world, "/v1/user/charge", { user: "ada", amount }, key);
  const refund = (activityId: string, amount: string) =>
    move(world, "/v1/user/refund", { user: "ada", activityId, amount }, `refund-${amount}`);
  const first = await deposit("ada", "5", "order-1");
  const second = await deposit("ada", "7.5");
  await deposit("bob", "1");
  const charged = await charge("2", "charge-1");
  await refund(charged, "0.5");
  await refund(charged, "0.25");
  await chat(world);
  await deliver(world);
  const last = await charge("1");
  await move(world, "/v1/user/refund", { user: "ada", activityId: second });
  await deliver(world);
  return { first, second, charged, last };
}

/** Changes a stored record, as no code of the service would. */
export async function edit<T>(world: World, key: Key, change: (value: T) => T): Promise<void> {
  const { value } = await world.deps.kv.get(key);
  assert.ok(value, `${key.join(" ")} is stored`);
  await put(world, key, toBytes(change(fromBytes<T>(value))));
}

export async function put(world: World, key: Key, value: Uint8Array): Promise<void> {
  await world.deps.kv.atomic({ checks: [], sets: [{ key, value }], deletes: [] });
}

export async function remove(world: World, key: Key): Promise<void> {
  await world.deps.kv.atomic({ checks: [], sets: [], deletes: [key] });
}

/** The keys that are stored under a prefix. */
export async function keysUnder(world: World, prefix: Key): Promise<Key[]> {
  return (await world.deps.kv.list({ prefix, limit: 1_000 })).map(({ key }) => key);
}

export type Busy = Awaited<ReturnType<typeof makeBusy>>;

/** A change to a busy world's store, and the fault that must be reported. */
export type Damage = [
  name: string,
  harm: (world: World, busy: Busy) => Promise<unknown>,
  told: (world: World, busy: Busy) => RegExp,
];

export function testDamage([name, harm, told]: Damage): void {
  Deno.test(`verify: ${name} is reported`, async () => {
    using world = await createWorld();
    const busy = await makeBusy(world);
    await world.clock.advance(61_000);
    assert.deepEqual((await verify(world)).faults, []);
    await harm(world, busy);
    const { faults } = await verify(world);
    const wanted = told(world, busy);
    assert.ok(faults.some((fault) => wanted.test(fault)), `${wanted} in ${faults.join("\n")}`);
  });
}
