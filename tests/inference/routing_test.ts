import assert from "node:assert/strict";
import {
  askedOf,
  failing,
  replies,
  type Reply,
  routedModels,
  routedWorld,
  twoUpstreams,
} from "../support/routing.ts";
import { chat, chatStream, until, usageOf } from "../support/chat.ts";
import { chunk, completion, sse, usage, usageChunk } from "../support/upstream.ts";
import type { World } from "../support/world.ts";

const answering = (model: string) => () => completion({ model });
async function assertSettled(world: World): Promise<void> {
  const { held } = await world.balance("ada");
  assert.equal(held, "0");
}

Deno.test("routes: the first target answers, under its own model's name and key", async () => {
  using world = await routedWorld();
  replies(world, { main: answering("a") });
  const { status, response } = await chat(world, { model: "smart" });
  assert.equal(status, 200);
  assert.equal(response.headers.get("x-service-upstream"), "main");
  assert.equal(response.headers.get("x-service-attempts"), "1");
  assert.deepEqual(askedOf(world), ["main a"]);
  assert.equal(world.upstream.calls[0]?.headers.get("authorization"), "Bearer main-key");
  const [entry] = await usageOf(world);
  assert.equal(entry?.delta, "-0.00005");
  assert.equal(entry?.usage.model, "smart");
  assert.equal(entry?.usage.upstream, "main");
});

for (
  const [what, reply] of Object.entries<Reply>({
    "500": failing(500),
    "503 with Retry-After": failing(503, { "retry-after": "7" }),
    "429": failing(429),
    "401 of the owner's key": failing(401),
    "404 of the model": failing(404),
    "a body that is no response": () => new Response("<html>", { status: 200 }),
    "an error with status 200": () => Response.json({ error: { message: "no", code: 500 } }),
    "no connection": () => Promise.reject(new Error("refused")),
  })
) {
  Deno.test(`fallback: after ${what} the next target answers, once and at its price`, async () => {
    using world = await routedWorld();
    replies(world, { main: reply, spare: answering("b") });
    for (const stream of [false, true]) {
      if (stream) {
        replies(world, {
          main: reply,
          spare: () =>
            sse([chunk({ content: "Hi" }, "stop", { model: "b" }), {
              ...usageChunk(),
              model: "b",
            }]),
        });
      }
      const response = stream
        ? await chatStream(world, { model: "smart" })
        : (await chat(world, { model: "smart" })).response;
      if (stream) await response.text();
      assert.equal(response.status, 200);
      assert.equal(response.headers.get("x-service-upstream"), "spare");
      // A target that says when to come back is not asked before.
      const attempts = stream && what.endsWith("Retry-After") ? "1" : "2";
      assert.equal(response.headers.get("x-service-attempts"), attempts);
    }
    assert.deepEqual(askedOf(world).filter((one) => one === "spare b").length, 2);
    const entries = await usageOf(world);
    assert.equal(entries.length, 2);
    for (const { delta } of entries) assert.equal(delta, "-0.00008");
    assert.equal(entries[1]?.usage.attempts, 2);
    await assertSettled(world);
  });
}

for (const status of [400, 413, 422]) {
  Deno.test(`fallback: a ${status} is the caller's own, and no other target is asked`, async () => {
    using world = await routedWorld();
    replies(world, { main: failing(status) });
    assert.equal((await chat(world, { model: "smart" })).status, status);
    assert.deepEqual(askedOf(world), ["main a"]);
    await assertSettled(world);
  });
}

Deno.test("fallback: where all fail the caller gets one error, and pays nothing", async () => {
  using world = await routedWorld();
  replies(world, { main: failing(429, { "retry-after": "9" }), spare: failing(404) });
  const { status, response } = await chat(world, { model: "smart" });
  assert.equal(status, 429);
  assert.equal(response.headers.get("retry-after"), "9");
  assert.equal(response.headers.get("x-service-attempts"), "2");
  assert.deepEqual(await usageOf(world), []);
  await assertSettled(world);
});

Deno.test("fallback: never after the first event has been sent to the caller", async () => {
  using world = await routedWorld();
  replies(world, {
    main: () => sse([chunk({ content: "Hel" })], { done: false }),
    spare: answering("b"),
  });
  const response = await chatStream(world, { model: "smart" });
  const text = await response.text();
  assert.match(text, /Hel/);
  assert.match(text, /error/);
  assert.deepEqual(askedOf(world), ["main a"]);
  assert.equal((await usageOf(world)).length, 1);
});

Deno.test("fallback: a whole response that breaks off costs the project, not the user", async () => {
  using world = await routedWorld();
  const broken = JSON.stringify(await completion({ usage: usage(10, 5) }).json()).slice(0, -3);
  const body = () =>
    new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(broken));
        setTimeout(() => controller.error(new Error("cut")), 5);
      },
    });
  replies(world, {
    main: () => new Response(body(), { headers: { "content-type": "application/json" } }),
    spare: answering("b"),
  });
  const { status } = await chat(world, { model: "smart" });
  assert.equal(status, 200);
  const [entry, ...more] = await usageOf(world);
  assert.deepEqual(more, []);
  assert.equal(entry?.delta, "-0.00008");
});

Deno.test("price: the project's price of the asked name holds whoever answers", async () => {
  using world = await routedWorld({
    pricing: {
      models: { ...routedModels, smart: { ...routedModels.a, input: "10", output: "10" } },
    },
  });
  replies(world, { main: failing(500), spare: answering("b") });
  await chat(world, { model: "smart" });
  const [entry] = await usageOf(world);
  assert.equal(entry?.delta, "-0.00015");
});

Deno.test("hold: a target that the balance does not pay for is not asked", async () => {
  using world = await routedWorld({
    pricing: { models: { ...routedModels, a: { ...routedModels.a, input: "100000" } } },
  });
  replies(world, { spare: answering("b") });
  const { response } = await chat(world, { model: "smart" });
  assert.equal(response.headers.get("x-service-upstream"), "spare");
  assert.deepEqual(askedOf(world), ["spare b"]);
});

Deno.test("hold: it covers the dearest target", async () => {
  using world = await routedWorld();
  let held = "";
  replies(world, {
    main: async () => {
      held = (await world.balance("ada")).held;
      return completion({ model: "a" });
    },
  });
  await chat(world, { model: "smart", max_tokens: 100 });
  // 6 per million for 100 tokens, and the prompt's bytes at 5.
  assert(Number(held) > 0.0006 && Number(held) < 0.0012, held);
});

Deno.test("timeouts: a target without a first byte in time is left for the next", async () => {
  const slow = {
    ...twoUpstreams,
    main: { ...twoUpstreams.main, timeouts: { firstByteMs: 5_000 } },
  };
  using world = await routedWorld({ upstreams: slow });
  for (const stream of [false, true]) {
    let aborted = false;
    replies(world, {
      main: ({ signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => {
            aborted = true;
            reject(new Error("aborted"));
          });
        }),
      spare: stream
        ? () =>
          sse([chunk({ content: "Hi" }, "stop", { model: "b" }), { ...usageChunk(), model: "b" }])
        : answering("b"),
    });
    const send = stream ? chatStream(world, { model: "smart" }) : chat(world, { model: "smart" });
    let done = false;
    const sent = send.finally(() => (done = true));
    await world.until(() => done, 500);
    const answer = await sent;
    const response = answer instanceof Response ? answer : answer.response;
    if (stream) await response.text();
    assert.equal(response.headers.get("x-service-upstream"), "spare");
    assert(aborted);
  }
  assert.equal((await usageOf(world)).length, 2);
});

Deno.test("timeouts: without any, a silent target is left after two minutes for the next", async () => {
  using world = await routedWorld();
  replies(world, { main: () => new Promise(() => {}), spare: answering("b") });
  const { response } = await until(world, chat(world, { model: "smart" }), 10_000);
  assert.equal(response.headers.get("x-service-upstream"), "spare");
  assert.equal((await usageOf(world)).length, 1);
});

Deno.test("idempotency: a replay after a fallback asks nobody and says who answered", async () => {
  using world = await routedWorld();
  replies(world, { main: failing(500), spare: answering("b") });
  const headers = { "idempotency-key": "k" };
  const first = await chat(world, { model: "smart" }, { headers });
  const again = await chat(world, { model: "smart" }, { headers });
  assert.deepEqual(again.body, first.body);
  assert.equal(again.response.headers.get("x-service-upstream"), "spare");
  assert.equal(world.upstream.calls.length, 2);
  assert.equal((await usageOf(world)).length, 1);
});

Deno.test("weight: unnamed conversations spread by weight, and continue where they began", async () => {
  using world = await routedWorld({
    routes: {
      smart: {
        strategy: "weight",
        targets: [{ upstream: "main", model: "a", weight: 3 }, { upstream: "spare", model: "b" }],
      },
    },
  });
  replies(world, { main: answering("a"), spare: answering("b") });
  for (let index = 0; index < 200; index++) await chat(world, { model: "smart" });
  const share = askedOf(world).filter((one) => one === "main a").length / 200;
  assert(share > 0.6 && share < 0.9, String(share));
  for (let index = 0; index < 10; index++) {
    world.upstream.calls.length = 0;
    const opening = [{ role: "user", content: `Hi ${index}` }];
    await chat(world, { model: "smart", messages: opening });
    const messages = [...opening, { role: "assistant", content: "Hello" }, ...opening];
    await chat(world, { model: "smart", messages });
    const [first, second] = askedOf(world);
    assert.equal(second, first);
  }
});

Deno.test("retries: once all have failed, those with a passing error are asked again", async () => {
  using world = await routedWorld();
  let asked = 0;
  replies(world, {
    main: () => ++asked < 3 ? failing(503)() : completion({ model: "a" }),
    spare: failing(401),
  });
  const { status, response } = await until(world, chat(world, { model: "smart" }), 100);
  assert.equal(status, 200);
  assert.equal(response.headers.get("x-service-attempts"), "4");
  assert.deepEqual(askedOf(world), ["main a", "spare b", "main a", "main a"]);
  assert.equal((await usageOf(world)).length, 1);
});

Deno.test("retries: at most five attempts, and none for a caller who has left", async () => {
  using world = await routedWorld();
  replies(world, { main: failing(500), spare: failing(500) });
  assert.equal((await until(world, chat(world, { model: "smart" }), 100)).status, 502);
  assert.equal(askedOf(world).length, 5);
  world.upstream.calls.length = 0;
  const leave = new AbortController();
  replies(world, {
    main: failing(500),
    spare: () => {
      leave.abort();
      return failing(500)();
    },
  });
  const { signal } = leave;
  await until(world, chat(world, { model: "smart" }, { signal }), 100).catch(() => {});
  assert.equal(askedOf(world).length, 2);
  await assertSettled(world);
});
