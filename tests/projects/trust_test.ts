import assert from "node:assert/strict";
import { readBytes } from "../../src/base/body.ts";
import { ApiError } from "../../src/base/errors.ts";
import { Secret } from "../../src/base/secret.ts";
import { bodyDeadlineMs } from "../../src/base/limits.ts";
import { chatBody, chatPath, storedRows } from "../support/books.ts";
import { chatStream } from "../support/chat.ts";
import { signedTopUpToken } from "../support/links.ts";
import { completion } from "../support/upstream.ts";
import { deliver, operate, subscribe, subscriptionsPath } from "../support/webhooks.ts";
import { adminKey, createWorld, testPricing, type World } from "../support/world.ts";

const oldKey = btoa("0123456789abcdef0123456789abcdef");
const newKey = btoa("fedcba9876543210fedcba9876543210");
const stripeKeys = { secretKey: "sk_test_of_the_owner", webhookSecret: "whsec_of_the_owner" };

Deno.test("secret: only reveal shows it", () => {
  const secret = new Secret("s3cret-text");
  assert.equal(secret.reveal(), "s3cret-text");
  const shown = [
    `${secret}`,
    String(secret),
    JSON.stringify({ secret }),
    Deno.inspect({ secret }),
    Deno.inspect([secret], { depth: 10, showHidden: true }),
    Object.entries(secret).join(),
    new Error(`no ${secret}`).message,
  ];
  for (const text of shown) assert.ok(!text.includes("s3cret"), text);
});

Deno.test("secret: a test world that logs one fails", async () => {
  const world = await createWorld();
  world.deps.log("info", "careless", { header: `Bearer ${world.apiKey}` });
  assert.throws(() => world[Symbol.dispose](), /a secret was logged/);
});

/** A world with other secrets, on the same store. */
const under = (world: World, keys: string) =>
  createWorld({ shareWith: world, env: { SECRETS_KEY: keys } });

async function opensAll(world: World, topUpPath: string): Promise<boolean> {
  const page = await world.call(topUpPath, { key: null });
  await page.body?.cancel();
  const before = world.subscriber.received.length;
  await world.deposit("ada", "1");
  await deliver(world);
  const chat = await world.json(chatPath, { body: chatBody("ada") });
  return page.status === 200 && world.subscriber.received.length > before && chat.status === 200;
}

Deno.test("secrets: SECRETS_KEY is rotated without a moment in which anything does not decrypt", async () => {
  using world = await createWorld({
    env: { SECRETS_KEY: oldKey },
    project: { upstream: { url: "https://own.test/v1", apiKey: "own-secret" }, stripe: stripeKeys },
  });
  const { id } = await subscribe(world, { customHeaders: { "x-token": "header-secret" } });
  await operate(world, `/subscriptions/${id}`, { method: "PATCH", body: { rotateSecret: true } });
  const path = `/topup/${await signedTopUpToken(world, "ada")}`;
  using prepared = await under(world, `${oldKey},${newKey}`);
  using changed = await under(world, `${newKey}, ${oldKey}`);
  for (const each of [world, prepared, changed]) assert.ok(await opensAll(each, path));
  const link = (await changed.json("/v1/user/balance/topup?user=ada")).body.url;
  const page = await prepared.call(new URL(link).pathname, { key: null });
  assert.equal(page.status, 200, "what the new key signed, the others know already");
  await page.body?.cancel();
  const reseal = (at: World, cursor = "") =>
    at.json(`/v1/admin/secrets/reseal${cursor}`, { method: "POST", key: adminKey });
  assert.deepEqual((await reseal(changed)).body, { resealed: 6, unreadable: [], nextCursor: null });
  assert.deepEqual((await reseal(changed)).body, { resealed: 0, unreadable: [], nextCursor: null });
  using done = await under(world, newKey);
  const fresh = (await done.json("/v1/user/balance/topup?user=ada")).body.url;
  assert.ok(await opensAll(done, new URL(fresh).pathname));
  const stale = await done.call(path, { key: null });
  assert.equal(stale.status, 404, "a link of the key that is gone");
  await stale.body?.cancel();
  assert.equal((await reseal(done, "?cursor=x")).status, 400);
  assert.equal((await done.json("/v1/admin/secrets/reseal", { method: "POST" })).status, 401);
});

Deno.test("secrets: those of the last of many projects are probed too", async () => {
  using world = await createWorld({ env: { SECRETS_KEY: oldKey } });
  for (let n = 0; n < 24; n++) await world.makeProject();
  await world.makeProject({ stripe: stripeKeys });
  using changed = await under(world, newKey);
  assert.equal((await changed.app.probeSecrets()).unreadable.length, 2);
});

Deno.test("secrets: one that no key decrypts is named, and the others still decrypt", async () => {
  using world = await createWorld({
    env: { SECRETS_KEY: oldKey },
    project: { stripe: stripeKeys },
  });
  assert.deepEqual(await world.app.probeSecrets(), { opened: 2, unreadable: [] });
  using changed = await under(world, newKey);
  const fields = { url: "https://hooks.example.com/farebox", events: ["*"] };
  const made = await changed.json(subscriptionsPath, { key: world.apiKey, body: fields });
  assert.equal(made.status, 201);
  const { opened, unreadable } = await changed.app.probeSecrets();
  assert.deepEqual([opened, unreadable], [1, [world.projectId, world.projectId]]);
  const { status, body } = await changed.json("/v1/admin/secrets/reseal", {
    method: "POST",
    key: adminKey,
  });
  assert.deepEqual([status, body.unreadable], [200, [world.projectId]]);
});

Deno.test("secrets: all secrets of many projects are resealed, a page at a time", async () => {
  using world = await createWorld({ env: { SECRETS_KEY: oldKey } });
  for (let n = 0; n < 45; n++) {
    await world.makeProject({ upstream: { url: "https://own.test/v1", apiKey: `secret-${n}` } });
  }
  using changed = await under(world, `${newKey},${oldKey}`);
  let resealed = 0;
  let pages = 0;
  for (let cursor: string | null = ""; cursor !== null; pages++) {
    const query: string = cursor && `?cursor=${cursor}`;
    const { body } = await changed.json(`/v1/admin/secrets/reseal${query}`, {
      method: "POST",
      key: adminKey,
    });
    resealed += body.resealed;
    cursor = body.nextCursor;
  }
  assert.deepEqual([resealed, pages], [45, 3]);
});

/** Another project, with money for the same user; returns its key. */
async function otherProject(world: World): Promise<string> {
  const { body } = await world.json("/v1/admin/projects", {
    key: adminKey,
    body: { name: "other", pricing: testPricing },
  });
  const deposit = { user: "ada", amount: "10" };
  await world.json("/v1/user/balance/deposit", {
    key: body.apiKey,
    body: deposit,
    headers: { "idempotency-key": "d" },
  });
  return body.apiKey;
}

Deno.test("overload: a project has at most half of the places, and others find room", async () => {
  using world = await createWorld({ env: { REQUESTS_MAX: "4" } });
  await world.deposit("ada", "10");
  const key = await otherProject(world);
  const gate = Promise.withResolvers<void>();
  world.upstream.reply(async () => {
    await gate.promise;
    return completion();
  });
  const running = [1, 2].map(() => world.json(chatPath, { body: chatBody("ada") }));
  await world.until(() => world.upstream.calls.length >= 2);
  const { status, body } = await world.json(chatPath, { body: chatBody("bob") });
  assert.deepEqual([status, body.error.code], [503, "overloaded"]);
  const other = world.json(chatPath, { body: chatBody("ada"), key });
  await world.until(() => world.upstream.calls.length >= 3);
  gate.resolve();
  for (const each of [...running, other]) assert.equal((await each).status, 200);
  assert.equal((await world.json(chatPath, { body: chatBody("ada") })).status, 200);
});

Deno.test("overload: one request more than the maximum is 503 at once, and leaves nothing behind", async () => {
  using world = await createWorld({ env: { REQUESTS_MAX: "4" } });
  await world.deposit("ada", "10");
  const key = await otherProject(world);
  const gate = Promise.withResolvers<void>();
  world.upstream.reply(async () => {
    await gate.promise;
    return completion();
  });
  const running = [world.apiKey, key, world.apiKey, key].map((key) =>
    world.json(chatPath, { body: chatBody("ada"), key })
  );
  await world.until(() => world.upstream.calls.length >= 4);
  const rows = (await storedRows(world)).length;
  const { status, body, response } = await world.json(chatPath, { body: chatBody("ada") });
  assert.deepEqual([status, body.error.code], [503, "overloaded"]);
  assert.equal(response.headers.get("retry-after"), "1");
  assert.equal((await world.json("/v1/user/balance?user=ada")).status, 503);
  assert.equal((await world.json("/healthz", { key: null })).status, 200, "probes are answered");
  assert.equal((await storedRows(world)).length, rows);
  gate.resolve();
  for (const each of running) assert.equal((await each).status, 200);
  assert.equal((await world.json(chatPath, { body: chatBody("ada") })).status, 200);
});

Deno.test("overload: streams count until they end, also those that start together", async () => {
  using world = await createWorld({ env: { REQUESTS_MAX: "6" } });
  await world.deposit("ada", "10");
  const key = await otherProject(world);
  const frames = [
    '{"id":"c","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}',
    "[DONE]",
  ];
  const gate = Promise.withResolvers<void>();
  world.upstream.reply(() =>
    new Response(
      new ReadableStream({
        async start(controller) {
          await gate.promise;
          for (const frame of frames) {
            controller.enqueue(new TextEncoder().encode(`data: ${frame}\n\n`));
          }
          controller.close();
        },
      }),
      { headers: { "content-type": "text/event-stream" } },
    )
  );
  const open = () => chatStream(world);
  const others = () => world.call(chatPath, { body: { ...chatBody("ada"), stream: true }, key });
  const streams = [await open(), await open(), await open()];
  for (let at = 0; at < 3; at++) streams.push(await others());
  assert.deepEqual(streams.map(({ status }) => status), Array(6).fill(200));
  const more = await Promise.all([open(), open(), others(), world.call("/v1/models")]);
  assert.deepEqual(more.map(({ status }) => status), [503, 503, 503, 503]);
  gate.resolve();
  for (const stream of streams) assert.match(await stream.text(), /\[DONE\]/);
  assert.equal((await world.json("/v1/user/balance?user=ada")).status, 200);
});

Deno.test("slow bodies: a body that does not arrive in time is 408, and holds no memory", async () => {
  using world = await createWorld();
  await world.deposit("ada", "10");
  for (const path of [chatPath, "/v1/user/charge", "/v1/webhooks/subscriptions"]) {
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode('{"user":')),
    });
    const { waiting } = world.clock;
    const asked = world.json(path, { raw: body, headers: { "content-type": "application/json" } });
    await world.until(() => world.clock.waiting > waiting);
    await world.clock.advance(bodyDeadlineMs);
    const { status, body: answer } = await asked;
    assert.deepEqual([status, answer.error.code], [408, "request_timeout"], path);
  }
  assert.deepEqual(await world.balance("ada"), { balance: "10", held: "0", available: "10" });
});

Deno.test("slow bodies: one whose sender disconnects is not an error of the service", async () => {
  for (const headers of [{ "content-length": "1000" }, {}]) {
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode('{"us'));
        controller.error(new TypeError("connection reset"));
      },
    });
    const request = new Request("http://x/", { method: "POST", body, headers });
    const tooLarge = () => new ApiError(413, { message: "too large" });
    await assert.rejects(readBytes(request, { bytesMax: 2_000, tooLarge }), {
      status: 400,
      code: "incomplete_body",
    });
  }
});
