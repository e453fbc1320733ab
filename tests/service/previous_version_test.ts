import assert from "node:assert/strict";
import { createApp } from "../../src/app.ts";
import { gunzipSync } from "node:zlib";
import { chat, chatBody } from "../support/chat.ts";
import { verify } from "../support/verify.ts";
import { env } from "../support/wallets.ts";
import { deliver } from "../support/webhooks.ts";
import { adminKey, createWorld, type World } from "../support/world.ts";

// The database in `version_1.kv.gz` was written by the version before the modules were renamed,
// and `version_1.json` has that version's responses about it: deposits, charges, a refund, chats
// streamed and not, trial credits, a wallet, webhooks, and a call that never ended.
const fixture = (name: string) => new URL(`../fixtures/database/${name}`, import.meta.url);
const before = JSON.parse(await Deno.readTextFile(fixture("version_1.json")));

/** A world on a copy of that database, at the time it was written. */
async function previousWorld(folder: string): Promise<World> {
  const path = `${folder}/farebox.kv`;
  await Deno.writeFile(path, gunzipSync(await Deno.readFile(fixture("version_1.kv.gz"))));
  const world = await createWorld({ seed: 77, env, database: await Deno.openKv(path) });
  await world.clock.advance(before.at - world.clock.now());
  return Object.assign(world, { projectId: before.projectId, apiKey: before.apiKey });
}

async function withPreviousWorld(test: (world: World) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    using world = await previousWorld(folder);
    await test(world);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("previous version: its balances, activities and summary read as before", () =>
  withPreviousWorld(async (world) => {
    for (const user of ["ada", "bob", "carol"]) {
      assert.deepEqual(await world.balance(user), before.balances[user], user);
      assert.deepEqual(await world.activities(user), before.activities[user], user);
    }
    const { apiKey: key } = before.shared;
    const balance = await world.json("/v1/user/balance?user=dora", { key });
    assert.deepEqual(balance.body, before.wallet);
    const activities = await world.json("/v1/user/activities?user=dora", { key });
    assert.deepEqual(activities.body, before.walletActivities);
    const admin = `/v1/admin/projects/${before.projectId}`;
    const users = await world.json(`${admin}/users`, { key: adminKey });
    assert.deepEqual(users.body, before.users);
    const range = "from=2026-01-01&to=2026-01-02";
    const summary = await world.json(`${admin}/summary?${range}`, { key: adminKey });
    assert.partialDeepStrictEqual(summary.body.totals, before.summary.totals);
    assert.partialDeepStrictEqual(summary.body.models, before.summary.models);
  }));

Deno.test("previous version: its keys, idempotency keys and wallets keep working", () =>
  withPreviousWorld(async (world) => {
    const headers = { "idempotency-key": "chat-1" };
    const body = {
      model: "test-model",
      user: "ada",
      messages: [{ role: "user", content: "Hello" }],
    };
    // Its cost is a text, which the API document no longer has: a service without that check.
    const service = await createApp(world.deps);
    const replayed = await service.fetch(
      new Request("http://localhost/v1/chat/completions", {
        method: "POST",
        headers: {
          ...headers,
          authorization: `Bearer ${world.apiKey}`,
          "content-type": "application/json",
        },
        body: JSON.stringify(body),
      }),
    );
    assert.deepEqual(await replayed.json(), before.replay);
    assert.equal(replayed.headers.get("idempotent-replayed"), "true");
    assert.equal(world.upstream.calls.length, 0);
    const deposit = { user: "ada", amount: "1", metadata: { order: 17 } };
    const again = await world.json("/v1/user/balance/deposit", {
      body: deposit,
      headers: { "idempotency-key": "order-17" },
    });
    assert.equal(again.response.headers.get("idempotent-replayed"), "true");
    const chatted = await world.json("/v1/chat/completions", { body: chatBody() });
    assert.equal(chatted.status, 200);
    const wallet = await world.json("/v1/user/charge", {
      key: before.shared.apiKey,
      body: { user: "dora", amount: "1" },
    });
    assert.equal(wallet.body.success, true, JSON.stringify(wallet.body));
  }));

Deno.test("previous version: its projects pass unknown fields on as before", () =>
  withPreviousWorld(async (world) => {
    const { body } = await world.json(`/v1/admin/projects/${before.projectId}`, { key: adminKey });
    assert.equal(body.project.unknownFields, "pass");
    const unknown = await world.json("/v1/chat/completions", { body: chatBody({ preset: "x" }) });
    assert.equal(unknown.status, 200);
    assert.equal(world.upstream.calls.at(-1)?.body.preset, "x");
    const priced = await world.json("/v1/chat/completions", { body: chatBody({ models: ["y"] }) });
    assert.deepEqual([priced.status, priced.body.error.code], [400, "unsupported_parameter"]);
  }));

Deno.test("previous version: a call that it left open ends, and the whole database verifies", () =>
  withPreviousWorld(async (world) => {
    assert.deepEqual((await verify(world)).faults, []);
    await world.clock.advance(2 * 60_000);
    await world.app.sweep();
    await chat(world);
    await deliver(world);
    const { held } = await world.balance("bob");
    assert.equal(held, "0");
    await world.clock.advance(60_000);
    const { faults, checked } = await verify(world);
    assert.deepEqual(faults, []);
    assert.ok((checked.entries ?? 0) >= 10, JSON.stringify(checked));
  }));
