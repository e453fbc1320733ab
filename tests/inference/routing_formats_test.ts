import assert from "node:assert/strict";
import { chat, chatStream, until, usageOf } from "../support/chat.ts";
import { askedOf, failing, replies, routedWorld, twoUpstreams } from "../support/routing.ts";
import { respond, tokens, upstreamResponse } from "../support/responses.ts";
import { completion, usage } from "../support/upstream.ts";
import { adminKey } from "../support/world.ts";
import { deliver, subscribe } from "../support/webhooks.ts";
import { asAda, messageObject, send } from "../support/messages.ts";

const response = (model: string, id: string) => () =>
  Response.json(upstreamResponse({ model, id }));

Deno.test("responses: one that is continued stays with the upstream that keeps it", async () => {
  using world = await routedWorld();
  replies(world, { main: failing(500), spare: response("b", "resp_1") });
  const first = await respond(world, { model: "smart" });
  assert.equal(first.status, 200);
  replies(world, { main: response("a", "resp_2"), spare: response("b", "resp_3") });
  world.upstream.calls.length = 0;
  const next = await respond(world, { model: "smart", previous_response_id: "resp_1" });
  assert.equal(next.status, 200);
  assert.deepEqual(askedOf(world), ["spare b"]);
  replies(world, { spare: response("b", "resp_1") });
  const kept = await world.json("/v1/responses/resp_1?user=ada", { method: "GET" });
  assert.equal(kept.status, 200);
  assert.equal(world.upstream.calls.at(-1)?.url, "https://spare.example/v1/responses/resp_1");
});

Deno.test("responses: one that says it failed is left for the next target", async () => {
  using world = await routedWorld();
  const error = { code: "server_error", message: "down" };
  const failed = { status: "failed", error, output: [], usage: tokens(10, 0), model: "a" };
  replies(world, {
    main: () => Response.json(upstreamResponse(failed)),
    spare: response("b", "resp_1"),
  });
  const { status, response: { headers } } = await respond(world, { model: "smart" });
  assert.equal(status, 200);
  assert.equal(headers.get("x-service-attempts"), "2");
  assert.equal((await usageOf(world)).length, 1);
});

Deno.test("messages: the next target may speak another format", async () => {
  using world = await routedWorld({
    upstreams: {
      main: { ...twoUpstreams.main, formats: ["messages"] },
      spare: { ...twoUpstreams.spare, formats: ["chat"] },
    },
  });
  replies(world, { main: failing(529), spare: () => completion({ model: "b" }) });
  const { status, body } = await send(world, { model: "smart" });
  assert.equal(status, 200);
  assert.equal(body.content[0].text, "Hello there");
  assert.deepEqual(
    world.upstream.calls.map(({ url }) => url),
    ["https://main.example/v1/messages", "https://spare.example/v1/chat/completions"],
  );
  replies(world, { main: () => Response.json(messageObject({ model: "a" })) });
  assert.equal((await send(world, { model: "smart" })).body.model, "a");
});

Deno.test("count_tokens, embeddings and moderations follow routes too", async () => {
  using world = await routedWorld();
  replies(world, {
    main: ({ url }) =>
      url.endsWith("count_tokens")
        ? Response.json({ input_tokens: 7 })
        : url.endsWith("embeddings")
        ? failing(503)()
        : Response.json({ id: "modr-1", model: "a", results: [] }),
    spare: () =>
      Response.json({
        object: "list",
        model: "b",
        data: [{ object: "embedding", index: 0, embedding: [0.1] }],
        usage: { prompt_tokens: 3, total_tokens: 3 },
      }),
  });
  const messages = [{ role: "user", content: "Hi" }];
  const counted = await world.json("/v1/messages/count_tokens", {
    body: { model: "smart", messages },
    headers: asAda,
  });
  assert.deepEqual(counted.body, { input_tokens: 7 });
  const embedded = await world.json("/v1/embeddings", {
    body: { model: "smart", input: "Hi", user: "ada" },
  });
  assert.equal(embedded.status, 200);
  const moderated = await world.json("/v1/moderations", { body: { model: "smart", input: "Hi" } });
  assert.equal(moderated.status, 200);
  assert.deepEqual(askedOf(world), ["main a", "main a", "spare b", "main a"]);
  replies(world, {
    main: failing(500),
    spare: () => Response.json({ id: "modr-2", model: "b", results: [] }),
  });
  const next = await world.json("/v1/moderations", { body: { model: "smart", input: "Hi" } });
  assert.equal(next.body.id, "modr-2");
  const [entry] = await usageOf(world);
  assert.equal(entry?.delta, "-0.000015");
});

Deno.test("events: each change of the target, and all attempts where none answers", async () => {
  using world = await routedWorld();
  await subscribe(world, { events: ["proxy.request.*"] });
  const dataOf = async (type: string) => {
    await deliver(world);
    const found = world.subscriber.received.map(({ body }) => body.event)
      .filter((event) => event.type === type);
    world.subscriber.received.length = 0;
    return found.map(({ data }) => data);
  };
  replies(world, { main: failing(429), spare: () => completion({ model: "b" }) });
  await chat(world, { model: "smart" });
  const [rerouted, ...more] = await dataOf("proxy.request.rerouted");
  assert.deepEqual(more, []);
  const { from, fromModel, to, toModel, reason, model } = rerouted;
  assert.deepEqual(
    { from, fromModel, to, toModel, reason, model },
    {
      from: "main",
      fromModel: "a",
      to: "spare",
      toModel: "b",
      reason: "rate_limited",
      model: "smart",
    },
  );
  replies(world, { main: failing(500), spare: failing(503) });
  assert.equal((await until(world, chat(world, { model: "smart" }))).status, 502);
  const [failed] = await dataOf("proxy.request.failed");
  assert.deepEqual(failed.attempts.map(({ upstream }: { upstream: string }) => upstream), [
    "main",
    "spare",
    "main",
    "spare",
    "main",
  ]);
});

const catalogued = {
  upstreams: {
    main: { ...twoUpstreams.main, provider: "openai" },
    spare: { ...twoUpstreams.spare, provider: "openai" },
  },
  routes: {
    smart: {
      targets: [{ upstream: "main", model: "gpt-4o" }, { upstream: "spare", model: "gpt-4o-mini" }],
    },
  },
  pricing: { models: {}, catalogue: true, markupPercent: "100" },
};

Deno.test("cost: what a failed attempt reported is the project's cost, and not the user's", async () => {
  using world = await routedWorld(catalogued);
  const billed = JSON.stringify({
    ...(await completion({ model: "gpt-4o", usage: usage(1000, 100) }).json()),
  });
  const body = () => {
    const bytes = new TextEncoder().encode(billed.slice(0, -1));
    return new ReadableStream({
      start(controller) {
        controller.enqueue(bytes);
        setTimeout(() => controller.error(new Error("cut")), 5);
      },
    });
  };
  replies(world, {
    main: () => new Response(body(), { headers: { "content-type": "application/json" } }),
    spare: () => completion({ model: "gpt-4o-mini", usage: usage(1000, 100) }),
  });
  await chat(world, { model: "smart" });
  const [entry] = await usageOf(world);
  // 0.15 and 0.6 a million, twice; and 2.5 and 10 a million, once.
  assert.equal(entry?.delta, "-0.00042");
  assert.equal(entry?.usage.upstreamCost, "0.00371");
  await world.deps.committer.flush();
  const path = `/v1/admin/projects/${world.projectId}/summary`;
  const { body: { targets } } = await world.json(path, { method: "GET", key: adminKey });
  const counted = { attempts: 1, firstTokenMs: 0 };
  assert.deepEqual(targets, [
    {
      ...counted,
      upstream: "main",
      model: "gpt-4o",
      answers: 0,
      cost: "0",
      upstreamCost: "0.0035",
    },
    {
      ...counted,
      upstream: "spare",
      model: "gpt-4o-mini",
      answers: 1,
      cost: "0.00042",
      upstreamCost: "0.00021",
    },
  ]);
});

Deno.test("streams: the response begins only when no other target can be asked any more", async () => {
  using world = await routedWorld();
  const hanging = () => new Promise<Response>(() => {});
  replies(world, { main: hanging, spare: () => completion({ model: "b" }) });
  let begun: Response | null = null;
  const sent = chatStream(world, { model: "smart" }, { keepClock: true })
    .then((response) => (begun = response));
  await world.clock.advance(20_000);
  assert.equal(begun, null);
  await world.until(() => begun !== null, 1_000);
  const reader = (await sent).body?.getReader();
  const { value } = await reader?.read() ?? {};
  assert.equal(new TextDecoder().decode(value), ": keep-alive\n\n");
  assert.deepEqual(askedOf(world), ["main a"]);
  await reader?.cancel();
});

Deno.test("streams: an error is a status, however long the attempts before it took", async () => {
  using world = await routedWorld();
  const late = async () => {
    await world.deps.clock.sleep(1_500);
    return failing(500)();
  };
  replies(world, { main: late, spare: late });
  const response = await until(
    world,
    chatStream(world, { model: "smart" }, { keepClock: true }),
    250,
  );
  assert.equal(response.status, 502);
  assert.equal(response.headers.get("x-service-attempts"), "5");
});
