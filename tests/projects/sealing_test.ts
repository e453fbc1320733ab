import assert from "node:assert/strict";
import { sealedWithKey } from "../../src/store/keys.ts";
import { chatBody, chatPath } from "../support/books.ts";
import { subscribe, subscriptionsPath } from "../support/webhooks.ts";
import { adminKey, createWorld, type World } from "../support/world.ts";

// What a rotation of SECRETS_KEY leaves behind, whichever way it was cut.

const key = (n: number) => new Uint8Array(32).fill(n).toBase64();
const [old, fresh, third] = [key(1), key(2), key(3)];
const stripe = { secretKey: "sk_test_of_the_project", webhookSecret: "whsec_of_the_project" };
const upstream = { url: "https://own.test/v1", apiKey: "secret-of-the-upstream" };

let processes = 1;

/** The same store, by a process with these keys. */
const under = (world: World, keys: string) =>
  createWorld({ env: { SECRETS_KEY: keys }, shareWith: world, seed: ++processes });

const warningOf = async (world: World): Promise<string | null> => {
  const { status, body } = await world.json("/readyz", { key: null });
  assert.equal(status, 200, JSON.stringify(body));
  return body.warnings?.[0] ?? null;
};

const reseal = async (world: World, cursor: string | null = null) =>
  (await world.json(`/v1/admin/secrets/reseal${cursor ? `?cursor=${cursor}` : ""}`, {
    method: "POST",
    key: adminKey,
  })).body;

async function resealAll(world: World): Promise<void> {
  let cursor: string | null = null;
  do cursor = (await reseal(world, cursor)).nextCursor; while (cursor !== null);
}

/** A store with projects on three pages of a walk. */
async function begin(): Promise<World> {
  const world = await createWorld({ env: { SECRETS_KEY: old }, project: { upstream } });
  for (let n = 0; n < 44; n++) await world.makeProject({ upstream });
  return world;
}

Deno.test("sealing: a rotation by the guide warns until everything is encrypted again", async () => {
  using world = await begin();
  assert.equal(await warningOf(world), null);
  using first = await under(world, `${old},${fresh}`);
  assert.equal(await warningOf(first), null, "nothing is encrypted with the new one yet");
  using second = await under(world, `${fresh},${old}`);
  assert.match(await warningOf(second) ?? "", /not all secrets are encrypted with its first key/);
  await second.makeProject({ upstream });
  await resealAll(second);
  assert.equal(await warningOf(second), null);
  using done = await under(world, fresh);
  assert.equal(await warningOf(done), null);
  assert.equal((await done.app.probeSecrets()).unreadable.length, 0);
});

for (const pages of [0, 1, 2]) {
  Deno.test(`sealing: a walk that was cut after ${pages} pages warns, and a whole one mends it`, async () => {
    using world = await begin();
    using during = await under(world, `${fresh},${old}`);
    let cursor: string | null = null;
    for (let page = 0; page < pages; page++) cursor = (await reseal(during, cursor)).nextCursor;
    using cut = await under(world, fresh);
    assert.match(await warningOf(cut) ?? "", /lacks a key.*'new,old'/);
    await resealAll(cut);
    assert.match(await warningOf(cut) ?? "", /lacks a key/, "what it could not read is not sealed");
    using again = await under(world, `${fresh},${old}`);
    if (cursor !== null) {
      // A walk is whole only from its start.
      await reseal(again, cursor);
      assert.notEqual(await warningOf(again), null);
    }
    await resealAll(again);
    assert.equal(await warningOf(again), null);
    using done = await under(world, fresh);
    assert.equal(await warningOf(done), null);
  });
}

Deno.test("sealing: rotated again later, the warning comes again", async () => {
  using world = await begin();
  using second = await under(world, `${fresh},${old}`);
  await resealAll(second);
  using next = await under(world, `${third},${fresh}`);
  assert.match(await warningOf(next) ?? "", /not all/);
  using early = await under(world, third);
  assert.match(await warningOf(early) ?? "", /lacks a key/);
  await resealAll(next);
  assert.equal(await warningOf(early), null);
});

Deno.test("sealing: a process with another first key is counted as long as it runs", async () => {
  using world = await begin();
  using second = await under(world, `${fresh},${old}`);
  using behind = await under(world, `${old},${fresh}`);
  await resealAll(second);
  await behind.makeProject({ upstream });
  await behind.app.sweep();
  assert.match(await warningOf(second) ?? "", /not all/);
  await resealAll(second);
  assert.equal(await warningOf(second), null);
});

Deno.test("sealing: a database of 0.9.0 is marked by one walk, and not before", async () => {
  using world = await begin();
  await world.deps.committer.commit({ checks: [], sets: [], deletes: [sealedWithKey] });
  using upgraded = await under(world, old);
  assert.match(await warningOf(upgraded) ?? "", /does not tell yet/);
  await reseal(upgraded);
  assert.match(await warningOf(upgraded) ?? "", /does not tell yet/, "one page is not all");
  await resealAll(upgraded);
  assert.equal(await warningOf(upgraded), null);
});

Deno.test("sealing: what no key decrypts is 503 with what to do, at every place that needs it", async () => {
  using world = await createWorld({ env: { SECRETS_KEY: old }, project: { upstream, stripe } });
  await world.deposit("ada", "5");
  const headers = { "x-api-key": "value" };
  await subscribe(world, { events: ["*"], customHeaders: headers });
  const topUp = (await world.json("/v1/user/balance/topup?user=ada")).body.url;
  using lost = await under(world, fresh);
  const form = new URLSearchParams({ amount: "10", formId: "x" }).toString();
  const type = { "content-type": "application/x-www-form-urlencoded" };
  const calls: [string, Parameters<World["json"]>[1]][] = [
    [chatPath, { body: chatBody("ada") }],
    [chatPath, { body: { ...chatBody("ada"), stream: true }, keepClock: true }],
    ["/v1/embeddings", { body: { model: "test-model", input: "x", user: "ada" } }],
    ["/v1/messages", {
      body: {
        model: "test-model",
        max_tokens: 10,
        messages: [{ role: "user", content: "x" }],
      },
      headers: { "x-service-user": "ada" },
    }],
    ["/v1/responses", { body: { model: "test-model", input: "x", user: "ada" } }],
    [subscriptionsPath, {}],
    [`/v1/stripe/${world.projectId}`, { raw: "{}", headers: { "stripe-signature": "t=1,v1=0" } }],
    [`/v1/admin/projects/${world.projectId}/stripe/reconcile`, {
      key: adminKey,
      body: { since: "2026-01-01" },
    }],
  ];
  for (const [path, options] of calls) {
    const { status, body } = await lost.json(path, options);
    const told = JSON.stringify(body);
    assert.equal(status, 503, `${path}: ${told}`);
    assert.match(told, /secret_unreadable|farebox secrets reseal/, path);
  }
  assert.equal((await lost.balance("ada")).held, "0", "nothing stays held");
  const page = await lost.call(new URL(topUp).pathname, {
    key: null,
    raw: form,
    headers: type,
  });
  await page.body?.cancel();
  assert.ok(page.status < 500 || page.status === 503, String(page.status));
});

Deno.test("sealing: a secret that no key decrypts is mended by entering it again", async () => {
  using world = await createWorld({ env: { SECRETS_KEY: old }, project: { upstream, stripe } });
  await world.deposit("ada", "5");
  using lost = await under(world, fresh);
  const { status, body } = await lost.json(`/v1/admin/projects/${world.projectId}`, {
    method: "PATCH",
    key: adminKey,
    body: { upstream, stripe },
  });
  assert.equal(status, 200, JSON.stringify(body));
  assert.equal((await lost.json(chatPath, { body: chatBody("ada") })).status, 200);
  await resealAll(lost);
  assert.equal(await warningOf(lost), null);
});
