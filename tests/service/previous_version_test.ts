import assert from "node:assert/strict";
import { gunzipSync } from "node:zlib";
import { fromDecimal } from "../../src/base/money.ts";
import { standardSignatures } from "../../src/webhooks/delivery/signature.ts";
import { chat, chatBody } from "../support/chat.ts";
import { Visitor } from "../support/console.ts";
import { storedRows } from "../support/books.ts";
import { SoftPasskey } from "../support/passkey.ts";
import { completion } from "../support/upstream.ts";
import { verify } from "../support/verify.ts";
import { Device, env, tellServer } from "../support/wallets.ts";
import { deliver } from "../support/webhooks.ts";
import { type Body, createWorld, type World } from "../support/world.ts";

// The database in `0.9.0.kv.gz` was written by version 0.9.0 (commit d5f24f8), and `0.9.0.json` has
// that version's responses about it: money by API and by Stripe, calls of all kinds, a wallet that
// changed hands, a passkey, keys, webhooks, deliveries, alerts, an erased user, and a call that
// never ended, because its process did.
const fixture = (name: string) => new URL(`../fixtures/database/${name}`, import.meta.url);
const before: Body = JSON.parse(await Deno.readTextFile(fixture("0.9.0.json")));

/** Runs a test in a world on a copy of that database, at the time it was written. */
async function withPreviousWorld(test: (world: World) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  const path = `${folder}/farebox.kv`;
  await Deno.writeFile(path, gunzipSync(await Deno.readFile(fixture("0.9.0.kv.gz"))));
  try {
    using world = await createWorld({ seed: 77, env, database: await Deno.openKv(path) });
    await world.clock.advance(before.at - world.clock.now());
    await test(Object.assign(world, {
      projectId: before.projectId,
      apiKey: before.keys.app,
      ownerKey: before.keys.owner,
    }));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** What is shown in another form than by 0.9.0, or apart: a summary's refunds by direction. */
const shownAnew = new Set(["apiKey", "secretKey", "webhookSecret", "refunds"]);

function comparable(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (name, part) => shownAnew.has(name) ? undefined : part));
}

for (const { path, who, body } of before.reads as Body[]) {
  const name = path.replace(before.projectId, "{project}").replace(before.sharedId, "{shared}");
  Deno.test(`0.9.0: GET ${name} reads as before`, () =>
    withPreviousWorld(async (world) => {
      const now = await world.json(path, { key: before.keys[who] });
      assert.equal(now.status, 200, JSON.stringify(now.body));
      assert.partialDeepStrictEqual(now.body, comparable(body));
    }));
}

Deno.test("0.9.0: its idempotency keys, cached responses and conversations are known", () =>
  withPreviousWorld(async (world) => {
    const again = await world.json("/v1/chat/completions", {
      body: before.replayed.body,
      headers: { "idempotency-key": "chat-1" },
    });
    assert.deepEqual(again.body, before.replayed.response);
    assert.equal(again.response.headers.get("idempotent-replayed"), "true");
    const order = await world.json("/v1/user/balance/deposit", {
      body: before.order,
      headers: { "idempotency-key": "order-17" },
    });
    assert.equal(order.response.headers.get("idempotent-replayed"), "true");
    const cached = await chat(world, before.cached);
    assert.equal(cached.response.headers.get("x-service-cache"), "hit");
    assert.equal(world.upstream.calls.length, 0);
    const next = await world.json("/v1/responses", {
      body: {
        model: "test-model",
        user: "ada",
        previous_response_id: before.turn,
        input: "And then?",
      },
    });
    assert.equal(next.status, 200, JSON.stringify(next.body));
    assert.match(JSON.stringify(world.upstream.calls.at(-1)?.body), /Remember me/);
  }));

Deno.test("0.9.0: what Stripe reports again counts once, and what it reports next counts", () =>
  withPreviousWorld(async (world) => {
    const { paid, refund, dispute, won, kept } = before.stripe;
    const tell = async (event: Body) => {
      const path = `/v1/stripe/${before.projectId}`;
      return (await tellServer(world, event, "whsec_of_the_owner", path)).body.outcome;
    };
    const balance = async (user: string) => fromDecimal((await world.balance(user)).balance);
    const [ada, bob] = [await balance("ada"), await balance("bob")];
    for (const event of [paid, refund, dispute]) await tell(event);
    assert.equal(await balance("ada"), ada);
    await tell(won);
    assert.equal(await balance("ada"), ada + fromDecimal("2"));
    const data = { object: { ...kept, payment_status: "paid" } };
    assert.equal(await tell({ ...paid, id: "evt_kept", data }), "booked");
    assert.equal(
      await balance("bob"),
      bob + fromDecimal("4"),
      "a refund of it was reported before",
    );
  }));

Deno.test("0.9.0: its keys, budgets, sessions, links and wallets keep working", () =>
  withPreviousWorld(async (world) => {
    const charge = (amount: string, key: string, user = "ada") =>
      world.json("/v1/user/charge", { key, body: { user, amount } });
    const over = await charge("0.9", before.keys.budgeted);
    assert.deepEqual([over.status, over.body.error.code], [403, "key_budget_reached"]);
    assert.equal((await charge("0.5", before.keys.budgeted)).body.success, true);
    const owner = new Visitor(world);
    owner.cookie = before.console;
    assert.equal((await owner.get(`/console/projects/${before.projectId}`)).status, 200);
    assert.equal((await new Device(world).get(before.link)).status, 200);
    const spent = await charge("1", before.keys.shared, "dora");
    assert.equal(spent.body.success, true, JSON.stringify(spent.body));
    const more = await charge("6", before.keys.shared, "dora");
    assert.equal(more.body.success, false, "the cap of 8 a day counts what 0.9.0 charged");
    const device = new Device(world);
    device.cookie = before.wallet;
    assert.match((await device.get("/wallet")).html, /\$22\.00/);
    const send = (path: string, body: unknown) => world.json(path, { key: null, body });
    const passkey = new SoftPasskey(new Uint8Array(32).fill(1), { origin: "https://farebox.test" });
    const { challenge } = (await send("/wallet/sign-in/options", {})).body;
    assert.equal((await send("/wallet/sign-in", passkey.answered(challenge))).status, 200);
  }));

/** Delivers what is due. The events of 0.9.0 lack `balanceVersion`, which the document requires. */
async function deliverAll(world: World): Promise<void> {
  await world.app.sweep();
  await deliver(world);
  world.subscriber.undocumented.length = 0;
}

Deno.test("0.9.0: its pending deliveries are made, and its webhooks' secrets sign", () =>
  withPreviousWorld(async (world) => {
    await world.deposit("ada", "1");
    await deliver(world);
    const sent = world.subscriber.received.find(({ url }) => !url.includes("broken"));
    const { headers, raw } = sent ?? assert.fail("nothing was sent");
    const timestamp = Number(headers["webhook-timestamp"]);
    const signed = { id: headers["webhook-id"] ?? "", timestamp, body: raw };
    const [replaced, current] = before.rotated;
    assert.equal(headers["webhook-signature"], standardSignatures([current, replaced], signed));
    await world.clock.advance(24 * 60 * 60_000);
    await deliverAll(world);
    const isBroken = ({ url }: { url: string }) => url.includes("broken");
    assert.ok(world.subscriber.received.some(isBroken));
  }));

Deno.test("0.9.0: a call that it left open ends, and the whole database verifies", () =>
  withPreviousWorld(async (world) => {
    assert.deepEqual((await verify(world)).faults, []);
    assert.notEqual((await world.balance("bob")).held, "0");
    await world.clock.advance(2 * 60_000);
    await world.app.sweep();
    world.upstream.reply(() => completion());
    assert.equal((await world.json("/v1/chat/completions", { body: chatBody() })).status, 200);
    await deliverAll(world);
    assert.equal((await world.balance("bob")).held, "0");
    await world.clock.advance(61_000);
    const { faults, checked } = await verify(world);
    assert.deepEqual(faults, []);
    assert.ok((checked.entries ?? 0) >= 27, JSON.stringify(checked));
  }));

Deno.test("0.9.0: what it kept for a time is removed in time", () =>
  withPreviousWorld(async (world) => {
    await world.app.sweep();
    await world.clock.advance(40 * 24 * 60 * 60_000);
    await world.app.sweep();
    const removers = ["chat_replay", "chat_replay_due", "cached_response", "kept_turn", "kept_id"];
    const left = (await storedRows(world)).map(({ key }) => String(key[0]));
    assert.deepEqual(removers.filter((kind) => left.includes(kind)), []);
  }));
