import assert from "node:assert/strict";
import {
  callStream,
  chat,
  chatBody,
  chatStream,
  completionsPath,
  until,
  usageOf,
} from "../support/chat.ts";
import { readEvents } from "../support/upstream.ts";
import { createWorld, type World } from "../support/world.ts";

const errorKeys = ["message", "type", "param", "code"];

Deno.test("chat errors: without a key it is 401 in OpenAI's format, and nothing is sent", async () => {
  using world = await createWorld();
  const { status, body, response } = await chat(world, {}, { key: null });
  assert.equal(status, 401); // case 1
  assert.deepEqual(Object.keys(body.error), errorKeys);
  assert.equal(body.error.type, "invalid_request_error");
  assert.equal(body.error.param, null);
  assert.equal(body.error.code, "invalid_api_key");
  assert.equal(response.headers.get("content-type"), "application/json");
  assert.equal(response.headers.get("www-authenticate"), "Bearer");
  assert.match(response.headers.get("x-request-id") ?? "", /^req_/);
  assert.equal(world.upstream.calls.length, 0);
});

Deno.test("chat errors: a wrong key is 401, and is not repeated", async () => {
  using world = await createWorld();
  const key = "sk_wrongwrongwrongwrongwrongwrongwrongwrongwrong";
  const { status, body } = await chat(world, {}, { key });
  assert.equal(status, 401); // case 2
  assert.equal(body.error.type, "invalid_request_error");
  assert.equal(body.error.code, "invalid_api_key");
  assert.ok(!JSON.stringify(body).includes(key));
  assert.ok(!JSON.stringify(world.logged).includes(key));
});

for (const scheme of ["bearer", "BEARER", "Bearer   "]) {
  Deno.test(`chat errors: '${scheme}' before the key works like Bearer`, async () => { // case 3
    using world = await createWorld();
    const headers = { authorization: `${scheme} ${world.apiKey} ` };
    assert.equal((await chat(world, {}, { key: null, headers })).status, 200);
  });
}

Deno.test("chat errors: Google's errors in a list are passed on, except about the owner's key", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const refuse = (error: Record<string, unknown>) =>
    world.upstream.once(() => Response.json([{ error: { code: 400, ...error } }], { status: 400 }));
  refuse({ message: "Unable to submit request: tools[0] has no name", status: "INVALID_ARGUMENT" });
  const refused = await chat(world);
  assert.equal(refused.status, 400);
  assert.match(refused.body.error.message, /tools\[0\] has no name/);
  const details = [{
    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
    reason: "API_KEY_INVALID",
  }];
  refuse({ message: "API key not valid. Please pass a valid API key.", details });
  const { status, body } = await chat(world);
  assert.deepEqual([status, body.error.code], [502, "upstream_unavailable"]);
  assert.ok(!JSON.stringify(body).includes("API key"));
});

Deno.test("chat errors: a compressed body is 415, and the error tells what to send", async () => {
  using world = await createWorld();
  const zipped = new Blob([JSON.stringify(chatBody())]).stream()
    .pipeThrough(new CompressionStream("gzip"));
  const raw = await new Response(zipped).arrayBuffer();
  const headers = {
    "content-type": "application/json",
    "content-encoding": "gzip",
    "content-length": String(raw.byteLength),
  };
  const { status, body, response } = await world.json(completionsPath, { raw, headers });
  assert.deepEqual([status, body.error.code], [415, "unsupported_media_type"]);
  assert.match(body.error.message, /Content-Encoding 'gzip'/);
  assert.equal(response.headers.get("accept-encoding"), "identity");
});

Deno.test("chat errors: an unknown endpoint is 404 JSON", async () => {
  using world = await createWorld();
  for (const path of ["/v1/files", "/v1/images/edits", "/nothing"]) {
    const { status, body, response } = await world.json(path, { body: {} });
    assert.deepEqual([status, body.error.code], [404, "unknown_url"], path); // case 6
    assert.ok(body.error.message.includes(`POST ${path}`));
    assert.match(response.headers.get("x-request-id") ?? "", /^req_/);
  }
  const hint = async (path: string) => (await world.json(path, { body: {} })).body.error.message;
  assert.match(await hint("/v1/ada/files"), /not served here.*base64/);
  const wrongBases = ["", "/V1", "/api/v1", "/v1/chat/completions", "/v1/of/ada"];
  for (const base of wrongBases) {
    assert.match(await hint(`${base}/chat/completions`), /base URL must end in \/v1/, base);
  }
  assert.match(await hint("/v1/chat/completions/models"), /base URL must end in \/v1/);
  assert.match(await hint("/v1/v1/user/charge"), /may contain \/v1 twice/);
  assert.match(await hint("/v1/usr/balance"), /Did you mean \/v1\/user\/balance\?$/);
  const { status, body, response } = await world.json(completionsPath);
  assert.deepEqual([status, body.error.code], [405, "method_not_allowed"]); // case 6
  assert.equal(response.headers.get("allow"), "POST, OPTIONS");
});

Deno.test("chat errors: browsers may call, and may read every response", async () => {
  using world = await createWorld();
  for (const path of [completionsPath, "/v1/models", "/v1/models/a", "/v1/ada/chat/completions"]) {
    const preflight = await world.call(path, {
      method: "OPTIONS",
      key: null,
      headers: { origin: "https://app.test", "access-control-request-method": "POST" },
    });
    assert.equal(preflight.status, 204, path); // case 7
    assert.equal(preflight.headers.get("access-control-allow-origin"), "*");
    assert.match(preflight.headers.get("access-control-allow-methods") ?? "", /POST/);
    assert.match(preflight.headers.get("access-control-allow-headers") ?? "", /authorization/);
    assert.equal(await preflight.text(), "");
  }
  await world.deposit("ada", "0.0001");
  const answers = [
    await chatStream(world, { user: "poor" }),
    await chatStream(world, { max_tokens: 1 }),
    await world.call(completionsPath, { body: chatBody({ user: "poor" }) }),
    await world.call(completionsPath, { body: chatBody({ max_tokens: 1 }) }),
    await world.call(completionsPath, { key: null, body: chatBody() }),
    await world.call("/v1/models"),
    await world.call("/v1/models/none"),
  ];
  for (const answer of answers) {
    assert.equal(answer.headers.get("access-control-allow-origin"), "*"); // case 7
    await answer.text();
  }
  const money = await world.call("/v1/user/balance?user=ada");
  assert.equal(money.headers.get("access-control-allow-origin"), null);
});

for (const path of ["/v1/chat/completions/", "//v1/chat/completions", "/v1//chat//completions//"]) {
  Deno.test(`chat errors: ${path} is the same endpoint`, async () => { // case 8
    using world = await createWorld();
    await world.deposit("ada", "1");
    const { status, body } = await world.json(path, { body: chatBody() });
    assert.equal(status, 200);
    assert.equal(body.usage.cost_exact, "0.00002");
  });
}

Deno.test("chat errors: a caller's request id is returned, else a generated one", async () => {
  using world = await createWorld();
  const own = await chat(world, {}, { headers: { "x-request-id": "abc-123" } });
  assert.equal(own.response.headers.get("x-request-id"), "abc-123");
  for (const bad of ["a b", "x".repeat(129)]) {
    const { response } = await chat(world, {}, { headers: { "x-request-id": bad } });
    assert.match(response.headers.get("x-request-id") ?? "", /^req_/);
  }
});

const notParsed: [string, BodyInit, string | null][] = [
  ["cut off", '{"model":', null], // case 9
  ["empty", "", null], // case 10
  ["a word", "hello", null], // case 9
  ["an array", "[]", "invalid_json"], // case 10
  ["a string", '"hi"', "invalid_json"], // case 10
  ["null", "null", "invalid_json"], // case 10
  ["not UTF-8", new Uint8Array([0x7b, 0xff, 0x7d]), "invalid_json"], // case 9
];

for (const [name, raw, code] of notParsed) {
  Deno.test(`chat errors: a body that is ${name} is 400`, async () => {
    using world = await createWorld();
    const { status, body } = await world.json(completionsPath, { raw });
    assert.equal(status, 400);
    assert.deepEqual(Object.keys(body.error), errorKeys);
    assert.deepEqual([body.error.param, body.error.code], [null, code]);
    assert.equal(body.error.type, "invalid_request_error");
    if (code === null) assert.match(body.error.message, /could not parse the JSON/);
  });
}

Deno.test("chat errors: a body that is not JSON gets its position, and is not quoted", async () => {
  using world = await createWorld();
  const told = async (raw: string) =>
    (await world.json(completionsPath, { raw })).body.error.message;
  assert.match(
    await told('{"model":"m",\n "user":"ada",}'),
    /but line 2, column 15 is not JSON\.$/,
  );
  assert.match(await told("{'model':'m'}"), /line 1, column 2 is not JSON\.$/);
  assert.match(await told('{"model":'), /: it must be a JSON object/);
  assert.match(await told(" "), /: it is empty, but must be a JSON object\.$/);
  const own = "secret (line 7 column 7)";
  for (const raw of [own, `{"a": ${own}`, `${own}}`]) {
    assert.doesNotMatch(await told(raw), /secret|7/);
  }
});

Deno.test("chat errors: a body without a JSON content type is 415", async () => {
  using world = await createWorld();
  const options = { body: chatBody(), headers: { "content-type": "text/plain" } };
  assert.equal((await world.json(completionsPath, options)).status, 415);
});

const invalid: [string, Record<string, unknown>, string, number?][] = [
  ["no messages", { messages: undefined }, "messages"], // case 11
  ["empty messages", { messages: [] }, "messages"], // case 11
  ["messages that are no list", { messages: "Hi" }, "messages"], // case 11
  ["a message that is no object", { messages: ["Hi"] }, "messages.0"],
  ["an unknown role", { messages: [{ role: "boss", content: "Hi" }] }, "messages.0.role"],
  ["no role", { messages: [{ content: "Hi" }] }, "messages.0.role"],
  ["content that is a number", { messages: [{ role: "user", content: 1 }] }, "messages.0.content"],
  ["no model", { model: undefined }, "model"], // case 12
  ["an empty model", { model: "" }, "model"], // case 12
  ["a model that is a number", { model: 4 }, "model"], // case 12
  ["an unpriced model", { model: "gpt-4o" }, "model", 404], // case 12
  ["an inherited name as model", { model: "constructor" }, "model", 404], // case 12
  ["the wildcard as model", { model: "*" }, "model", 404], // case 12
  ["a stream that is no boolean", { stream: "true" }, "stream"],
  ["no choices", { n: 0 }, "n"],
  ["too many choices", { n: 129 }, "n"],
  ["half a token", { max_tokens: 1.5 }, "max_tokens"], // case 34
  ["a bound as text", { max_completion_tokens: "5" }, "max_completion_tokens"], // case 34
  ["other models at any price", { models: ["a", "b"] }, "models"],
  ["plugins", { plugins: [{ id: "file-parser" }] }, "plugins"],
  ["web search", { web_search_options: {} }, "web_search_options"],
  ["xAI's search", { search_parameters: { mode: "on" } }, "search_parameters"],
  ["Qwen's search", { enable_search: true }, "enable_search"],
  ["Azure's data", { data_sources: [{ type: "azure_search" }] }, "data_sources"],
  ["Groq's own tools", { compound_custom: {} }, "compound_custom"],
  ["several answers, as llama.cpp calls them", { n_cmpl: 8 }, "n_cmpl"],
  ["another, dearer model", { fallbacks: ["dear-model"] }, "fallbacks"],
  ["a faster one", { speed: "fast" }, "speed"],
  ["a tool of the server's own", { tools: [{ type: "browser_search" }] }, "tools"],
  ["one without a type", { tools: [{ google_search: {} }] }, "tools"],
  ["another tier", { service_tier: "priority" }, "service_tier"],
  ["sound", { modalities: ["text", "audio"], audio: {} }, "audio"],
];

for (const [name, fields, param, expected = 400] of invalid) {
  Deno.test(`chat errors: ${name} is ${expected} naming the field, and nothing is sent`, async () => {
    using world = await createWorld();
    await world.deposit("ada", "1");
    const { status, body } = await chat(world, fields);
    assert.equal(status, expected);
    assert.deepEqual(Object.keys(body.error), errorKeys);
    assert.equal(body.error.param, param);
    assert.equal(typeof body.error.code, "string");
    if (expected === 404) assert.equal(body.error.code, "model_not_found");
    assert.equal(world.upstream.calls.length, 0);
    assert.equal((await world.balance("ada")).held, "0");
  });
}

Deno.test("chat errors: fields that the project allows are passed on", async () => {
  using world = await createWorld({ project: { allowedFields: ["service_tier"] } });
  await world.deposit("ada", "1");
  assert.equal((await chat(world, { service_tier: "priority" })).status, 200);
  assert.equal(world.upstream.calls[0]?.body.service_tier, "priority");
});

const bodyBytesMax = 20 * 1024 * 1024;

async function rejectsAsTooLarge(world: World, raw: BodyInit, headers = {}) {
  const { status, body } = await world.json(completionsPath, { raw, headers });
  assert.deepEqual([status, body.error.code], [413, "request_too_large"]); // case 14
}

Deno.test("chat errors: a body over the limit is 413, announced or not, and the next one is served", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  await rejectsAsTooLarge(world, "{}", { "content-length": String(bodyBytesMax + 1) });
  let sent = 0;
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      sent += 65_536;
      controller.enqueue(new Uint8Array(65_536));
    },
  });
  await rejectsAsTooLarge(world, endless);
  assert.ok(sent < bodyBytesMax + 1024 * 1024, `${sent} bytes were read`);
  assert.equal((await chat(world)).status, 200);
});

Deno.test("chat errors: a silent upstream is 504 at the deadline, and the hold is released", async () => {
  using world = await createWorld({ env: { UPSTREAM_TIMEOUT_MS: "10000" } });
  await world.deposit("ada", "1");
  world.upstream.reply(() => new Promise(() => {}));
  const unspent = { balance: "1", held: "0", available: "1" };
  const { status, body } = await until(world, chat(world), 1_000);
  assert.deepEqual([status, body.error.code], [504, "upstream_timeout"]); // case 37
  assert.deepEqual(await world.balance("ada"), unspent);
  // The streamed response has begun by then.
  const events = await until(world, chatStream(world).then(readEvents), 1_000);
  assert.deepEqual(events.map(({ error }) => error.code), ["upstream_timeout"]);
  assert.deepEqual(await world.balance("ada"), unspent);
  assert.ok(world.upstream.calls.every(({ signal }) => signal.aborted));
});

Deno.test("chat errors: a response that is still being read at the deadline is 504", async () => {
  using world = await createWorld({ env: { UPSTREAM_TIMEOUT_MS: "10000" } });
  await world.deposit("ada", "1");
  world.upstream.once(() => new Response(new ReadableStream()));
  const { status } = await until(world, chat(world), 1_000);
  assert.equal(status, 504); // case 37
  assert.equal((await world.balance("ada")).available, "1");
});

Deno.test("chat errors: an upstream that cannot be reached is 502", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  for (const stream of [false, true]) {
    world.upstream.once(() => Promise.reject(new TypeError("connection refused at 10.0.0.7")));
    const { status, body } = await chat(world, { stream });
    assert.deepEqual([status, body.error.code], [502, "upstream_error"]);
    assert.ok(!JSON.stringify(body).includes("10.0.0.7"));
  }
  assert.equal((await world.balance("ada")).available, "1");
  assert.deepEqual(await usageOf(world), []);
});

for (const [ms, status] of [[1_900, 400], [2_100, 200]] as const) {
  Deno.test(`chat errors: a stream that is refused after ${ms} ms is reported with ${status}`, async () => {
    using world = await createWorld();
    await world.deposit("ada", "1");
    world.upstream.once(async () => {
      await world.clock.sleep(ms);
      return Response.json({ error: { message: "no", code: "odd" } }, { status: 400 });
    });
    const response = await until(world, callStream(world), 100);
    assert.equal(response.status, status);
    const text = await until(world, response.text(), 100);
    const told = status === 200 ? text.split("\n\n").slice(0, 2) : ["", text];
    assert.equal(told[0], status === 200 ? ": keep-alive" : "");
    assert.equal(JSON.parse((told[1] ?? "").replace("data: ", "")).error.code, "odd");
    assert.equal((await world.balance("ada")).available, "1");
  });
}

Deno.test("chat errors: missing values, wrong types and values out of range are distinguished", async () => {
  using world = await createWorld();
  const told = async (fields: Record<string, unknown>) => {
    const { code, param } = (await chat(world, fields)).body.error;
    return [code, param];
  };
  assert.deepEqual(await told({ model: undefined }), ["missing_required_parameter", "model"]);
  assert.deepEqual(await told({ stream: "yes" }), ["invalid_type", "stream"]);
  assert.deepEqual(await told({ n: 0 }), ["invalid_value", "n"]);
});
