import assert from "node:assert/strict";
import {
  asAda,
  claude,
  closed,
  messageBody,
  messagesPath,
  messageStream,
  messagesWorld,
  opened,
  readMessageEvents,
  said,
  send,
  sendStream,
  start,
} from "../../support/messages.ts";
import type { CallOptions, World } from "../../support/world.ts";

const cases: [string, number, string, (world: World) => [string, CallOptions]][] = [
  ["no key", 401, "authentication_error", () => [messagesPath, { key: null, body: messageBody() }]],
  ["a wrong key", 401, "authentication_error", () => [
    messagesPath,
    { key: null, headers: { "x-api-key": "sk_wrong" }, body: messageBody() },
  ]],
  ["no user", 400, "invalid_request_error", () => [messagesPath, { body: messageBody() }]],
  ["no JSON", 400, "invalid_request_error", () => [messagesPath, { raw: "{", method: "POST" }]],
  ["an unpriced model", 404, "not_found_error", () => [
    messagesPath,
    { body: messageBody({ model: "other" }), headers: asAda },
  ]],
  ["GET", 405, "invalid_request_error", () => [messagesPath, { method: "GET" }]],
  ["GET below a user", 405, "invalid_request_error", () => [
    "/v1/ada/v1/messages/count_tokens",
    { method: "GET" },
  ]],
  ["another content type", 415, "invalid_request_error", () => [
    messagesPath,
    { raw: "a", method: "POST", headers: { "content-type": "text/plain" } },
  ]],
  ["a body that is too large", 413, "request_too_large", () => [
    messagesPath,
    { raw: new Uint8Array(21 * 1024 * 1024), method: "POST" },
  ]],
  ["the count for a wrong key", 401, "authentication_error", () => [
    `${messagesPath}/count_tokens`,
    { key: "sk_wrong", body: messageBody() },
  ]],
];
for (const [what, status, type, request] of cases) {
  Deno.test(`messages errors: ${what} is ${status} in Anthropic's shape`, async () => {
    using world = await messagesWorld();
    const [path, options] = request(world);
    const { response, body } = await world.json(path, options);
    assert.equal(response.status, status);
    const { type: kind, error, request_id: id, ...more } = body;
    assert.deepEqual([kind, error.type, more], ["error", type, {}]);
    assert.ok(error.message && "code" in error && "param" in error);
    assert.equal(response.headers.get("request-id"), id);
    assert.equal(response.headers.get("x-request-id"), id);
  });
}

Deno.test("messages errors: who names no user is told of the ways that work here", async () => {
  using world = await messagesWorld();
  const { body } = await world.json(messagesPath, { body: messageBody() });
  assert.match(body.error.message, /header 'X-Service-User', a base URL .* or a key/);
  assert.ok(!body.error.message.includes("in the body"));
});

Deno.test("messages errors: a key without the scope is 403, and a rate limit 429", async () => {
  using world = await messagesWorld({
    project: { limits: { reply: "error", key: { requestsPerMinute: 1 } } },
  });
  const { body: money } = await world.json(`/v1/admin/projects/${world.projectId}/keys`, {
    key: "test-admin-key-of-at-least-32-characters",
    body: { scopes: ["money"] },
  });
  const refused = await send(world, {}, { key: money.apiKey });
  assert.deepEqual([refused.status, refused.body.error.type], [403, "permission_error"]);
  world.seenSecrets.add(money.apiKey);
  await send(world);
  const limited = await send(world);
  assert.deepEqual([limited.status, limited.body.error.type], [429, "rate_limit_error"]);
  assert.ok(limited.response.headers.get("retry-after"));
});

for (
  const [status, type, seen, seenType] of [
    [400, "invalid_request_error", 400, "invalid_request_error"],
    [401, "authentication_error", 502, "api_error"],
    [402, "billing_error", 502, "api_error"],
    [403, "permission_error", 502, "api_error"],
    [413, "request_too_large", 413, "request_too_large"],
    [429, "rate_limit_error", 429, "rate_limit_error"],
    [500, "api_error", 502, "api_error"],
    [529, "overloaded_error", 529, "overloaded_error"],
  ] as const
) {
  Deno.test(`messages errors: ${status} of the upstream is ${seen}, whole and streamed, and free`, async () => {
    using world = await messagesWorld();
    const error = { type, message: "It says why. upstream-secret-key" };
    world.upstream.reply(() => Response.json({ type: "error", error }, { status }));
    for (const response of [(await send(world)).response, await sendStream(world)]) {
      assert.equal(response.status, seen);
      if (response.bodyUsed) continue;
      const body = await response.json();
      assert.deepEqual([body.type, body.error.type], ["error", seenType]);
      assert.ok(!JSON.stringify(body).includes("upstream-secret-key"));
    }
    assert.equal((await world.balance("ada")).balance, "10");
  });
}

for (const type of ["overloaded_error", "api_error", "billing_error"]) {
  const event = { type: "error", error: { type, message: "Overloaded" } };

  Deno.test(`messages errors: ${type} within a stream ends it, and what was said is charged`, async () => {
    using world = await messagesWorld();
    world.upstream.once(() => messageStream([start(), opened(0), said(0, "Hello"), event]));
    const events = await readMessageEvents(await sendStream(world));
    const last = events.at(-1) ?? assert.fail();
    assert.equal(last.type, "error");
    assert.equal(last.error.type, type === "billing_error" ? "api_error" : type);
    assert.equal(events.some((one) => one.type === "message_stop"), false);
    assert.ok(Number((await world.balance("ada")).balance) < 10);
  });

  Deno.test(`messages errors: ${type} before anything else is a status, and free`, async () => {
    using world = await messagesWorld();
    world.upstream.reply(() => messageStream([event]));
    const response = await sendStream(world);
    assert.ok(response.status >= 429, `${response.status}`);
    assert.equal((await response.json()).type, "error");
    assert.ok((await send(world)).status >= 429);
    assert.equal((await world.balance("ada")).balance, "10");
  });
}

Deno.test("messages errors: a stream that breaks off says so, after its cost", async () => {
  using world = await messagesWorld();
  world.upstream.once(() => messageStream([start(), opened(0), said(0, "Hello")]));
  const events = await readMessageEvents(await sendStream(world));
  const [delta, error] = events.slice(-2);
  assert.deepEqual([delta?.type, delta?.delta.stop_reason], ["message_delta", null]);
  assert.ok(delta?.usage.cost > 0);
  assert.deepEqual([error?.type, error?.error.type], ["error", "api_error"]);
});

const garbage: [string, () => Response][] = [
  ["a page", () => new Response("<html>", { headers: { "content-type": "text/html" } })],
  ["no JSON", () => new Response("hello")],
  ["an empty body", () => new Response("")],
  ["a list", () => Response.json([])],
  ["an empty object", () => Response.json({})],
  ["content that is null", () => Response.json({ content: null })],
  ["content that is a list of numbers", () => Response.json({ content: [1] })],
  ["blocks without a type", () => Response.json({ content: [{ text: "a" }] })],
  ["no content and no usage", () => Response.json({ content: [] })],
  ["a completion of chat", () => Response.json({ choices: [] })],
  ["an empty stream", () => messageStream([])],
  ["an end alone", () => messageStream([{ type: "message_stop" }])],
  ["events that are no objects", () =>
    new Response("data: 1\n\ndata: [\n\ndata: null\n\n", {
      headers: { "content-type": "text/event-stream" },
    })],
];
for (const [what, answer] of garbage) {
  Deno.test(`messages errors: ${what} of the upstream is 502 in shape, and free`, async () => {
    using world = await messagesWorld();
    world.upstream.reply(answer);
    const { status, body } = await send(world);
    assert.deepEqual([status, body.type, body.error.type], [502, "error", "api_error"]);
    const streamed = await sendStream(world);
    const text = await streamed.text();
    assert.ok(streamed.status === 502 || /event: error\n/.test(text), text);
    assert.equal((await world.balance("ada")).balance, "10");
  });
}

Deno.test("messages errors: events of any order and shape never break a stream", async () => {
  using world = await messagesWorld();
  const odd = [
    closed(3),
    start({ usage: "none", content: [1, { text: "a" }], id: 5 }),
    { type: "message_start" },
    { type: "content_block_start", index: -1, content_block: { type: "text", text: "a" } },
    { type: "content_block_start", content_block: null },
    { type: "content_block_delta", index: 9, delta: { type: "input_json_delta", partial_json: 5 } },
    { type: "content_block_delta", delta: { type: "thinking_delta", thinking: "b" } },
    { type: "message_delta", delta: 5, usage: [] },
    { type: "message_delta", delta: { stop_reason: 7 }, usage: { output_tokens: -1 } },
    { type: "new\nevent", text: "c" },
    { type: "new_event", text: "c" },
    { type: "message_delta", delta: { stop_reason: "end_turn" } },
    said(1, "late"),
    { type: "message_stop" },
    { type: "message_stop" },
  ];
  world.upstream.reply(() => messageStream(odd));
  const events = await readMessageEvents(await sendStream(world));
  assert.deepEqual(events.slice(-2).map(({ type }) => type), ["message_delta", "message_stop"]);
  assert.equal(events.filter(({ type }) => type === "message_start").length, 1);
  assert.equal(events[0]?.message.model, claude);
  assert.equal((await send(world)).status, 200);
  assert.ok(Number((await world.balance("ada")).balance) < 10);
});
