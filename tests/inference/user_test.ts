import assert from "node:assert/strict";
import { chat, chatBody, completionsPath, usageOf } from "../support/chat.ts";
import { adminKey, createWorld, type World } from "../support/world.ts";

const nobody = { user: undefined };

/** A header with the bytes of its UTF-8, as clients send it. */
function headerBytes(text: string): string {
  return String.fromCharCode(...new TextEncoder().encode(text));
}

async function makeKey(world: World, settings: Record<string, unknown>): Promise<string> {
  const path = `/v1/admin/projects/${world.projectId}/keys`;
  const { status, body } = await world.json(path, { key: adminKey, body: settings });
  assert.equal(status, 201, JSON.stringify(body));
  return body.apiKey;
}

const sources: {
  name: string;
  fields?: Record<string, unknown>;
  header?: string;
  path?: string;
  payer: string;
}[] = [
  { name: "the body", fields: { user: "bob" }, payer: "bob" }, // case 18
  { name: "the header", fields: nobody, header: "bob", payer: "bob" }, // case 19
  { name: "null in the body, and the header", fields: { user: null }, header: "bob", payer: "bob" },
  { name: "an empty body, and the header", fields: { user: "" }, header: "bob", payer: "bob" },
  {
    name: "an empty user, and safety_identifier",
    fields: { user: "", safety_identifier: "bob" },
    payer: "bob",
  },
  {
    name: "two empty names, and the path",
    fields: { user: "", safety_identifier: "" },
    path: "/v1/bob/chat/completions",
    payer: "bob",
  },
  { name: "both alike", fields: { user: "bob" }, header: "bob", payer: "bob" }, // case 20
  { name: "both, the body first", fields: { user: "bob" }, header: "eve", payer: "bob" }, // case 21
  { name: "the path", fields: nobody, path: "/v1/bob/chat/completions", payer: "bob" },
  {
    name: "the header before the path",
    fields: nobody,
    header: "bob",
    path: "/v1/eve/chat/completions",
    payer: "bob",
  },
  {
    name: "the path, escaped",
    fields: nobody,
    path: "/v1/%C3%A5sa%2F1/chat/completions",
    payer: "\u00e5sa/1",
  },
  {
    name: "safety_identifier, before the header",
    fields: { user: undefined, safety_identifier: "bob" },
    header: "eve",
    payer: "bob",
  }, // case 23
  {
    name: "the user, before safety_identifier",
    fields: { user: "bob", safety_identifier: "eve", prompt_cache_key: "eve" },
    payer: "bob",
  },
  {
    name: "unicode in the body",
    fields: { user: "\u00e5sa \ud83d\ude42" },
    payer: "\u00e5sa \ud83d\ude42",
  }, // case 24
  { name: "unicode in the header", fields: nobody, header: "\u00e5sa", payer: "\u00e5sa" }, // case 24
  { name: "blanks are kept", fields: { user: " bob " }, payer: " bob " }, // case 24
  { name: "the longest", fields: { user: "u".repeat(128) }, payer: "u".repeat(128) }, // case 24
  {
    name: "the longest, of characters that UTF-16 writes as two",
    fields: nobody,
    header: "😀".repeat(128),
    payer: "😀".repeat(128),
  },
];

for (const { name, fields, header, path = completionsPath, payer } of sources) {
  Deno.test(`chat user: named by ${name}, and charged`, async () => {
    using world = await createWorld();
    for (const user of new Set([payer, "eve"])) await world.deposit(user, "1");
    const headers: Record<string, string> = header ? { "x-service-user": headerBytes(header) } : {};
    const { status, body } = await world.json(path, { body: chatBody(fields), headers });
    assert.equal(status, 200);
    assert.equal(body.usage.cost_exact, "0.00002");
    assert.equal((await world.balance(payer)).balance, "0.99998");
    assert.equal((await usageOf(world, payer))[0]?.user, payer);
    if (payer !== "eve") assert.equal((await world.balance("eve")).balance, "1");
  });
}

const refused: [string, Record<string, unknown>, string, string][] = [
  ["nowhere", nobody, "user_required", "user"], // case 22
  [
    "only as prompt_cache_key",
    { user: undefined, prompt_cache_key: "bob" },
    "user_required",
    "user",
  ],
  [
    "empty as safety_identifier",
    { user: undefined, safety_identifier: "" },
    "user_required",
    "user",
  ],
  ["empty", { user: "" }, "user_required", "user"], // case 24
  ["too long", { user: "u".repeat(129) }, "invalid_value", "user"], // case 24
  ["too long in two units each", { user: "😀".repeat(129) }, "invalid_value", "user"],
  ["ten kilobytes", { user: "u".repeat(10_240) }, "invalid_value", "user"], // case 24
  ["a line break", { user: "bob\r\nx-evil: 1" }, "invalid_value", "user"], // case 24
  ["a control character", { user: "bob\u0000" }, "invalid_value", "user"], // case 24
  ["half a character", { user: "bob\ud800" }, "invalid_value", "user"], // case 24
  ["a number", { user: 7 }, "invalid_value", "user"],
];

for (const [name, fields, code, param] of refused) {
  Deno.test(`chat user: 400 and nothing sent when named ${name}`, async () => {
    using world = await createWorld();
    const { status, body } = await chat(world, fields);
    assert.equal(status, 400);
    assert.deepEqual([body.error.code, body.error.param], [code, param]);
    assert.equal(world.upstream.calls.length, 0);
  });
}

Deno.test("chat user: a header that is not UTF-8 is 400", async () => {
  using world = await createWorld();
  const { status, body } = await chat(world, nobody, { headers: { "x-service-user": "\u00e5sa" } });
  assert.equal(status, 400); // case 24
  assert.equal(body.error.param, "X-Service-User");
});

for (const word of ["chat", "models", "user", "webhooks", "admin", "v1"]) {
  Deno.test(`chat user: '${word}' in the path is reserved, and not a user`, async () => {
    using world = await createWorld();
    const { status } = await world.json(`/v1/${word}/chat/completions`, { body: chatBody(nobody) });
    assert.equal(status, 400);
  });
}

Deno.test("chat user: a base URL with /v1 twice works if a user is named, and is not a user", async () => {
  using world = await createWorld();
  const path = "/v1/v1/chat/completions";
  assert.equal((await world.json(path, { body: chatBody() })).status, 200);
  const { body } = await world.json(path, { body: chatBody(nobody) });
  assert.match(body.error.message, /may contain \/v1 twice/);
});

Deno.test("chat user: with userSource header, only the header counts", async () => {
  using world = await createWorld({ project: { userSource: "header" } });
  const missing = await chat(world, { user: "bob" });
  assert.deepEqual([missing.status, missing.body.error.code], [400, "user_required"]);
  const headers = { "x-service-user": "bob" };
  const deposit = { user: "eve", amount: "1" };
  await world.json("/v1/user/balance/deposit", { body: deposit, headers });
  const { body } = await chat(world, { user: "eve" }, { headers });
  assert.equal(body.usage.cost_exact, "0.00002");
  const { body: bob } = await world.json("/v1/user/balance", { headers });
  assert.equal(bob.balance, "0.99998");
});

Deno.test("chat user: a key's default user pays when no one is named", async () => {
  using world = await createWorld();
  await world.deposit("house", "1");
  const key = await makeKey(world, { defaultUser: "house" });
  assert.equal((await chat(world, nobody, { key })).status, 200); // case 22
  assert.equal((await world.balance("house")).balance, "0.99998");
});

Deno.test("chat user: a key bound to one user is refused for any other", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  await world.deposit("bob", "1");
  const key = await makeKey(world, { user: "ada", scopes: ["chat"] });
  assert.equal((await chat(world, nobody, { key })).status, 200);
  const { status, body } = await chat(world, { user: "bob" }, { key });
  assert.deepEqual([status, body.error.code], [403, "user_not_allowed"]);
  assert.equal((await world.balance("ada")).balance, "0.99998");
  assert.equal((await world.balance("bob")).balance, "1");
});

for (const name of ["x-api-key", "api-key"]) {
  Deno.test(`chat user: the key is read from ${name} too`, async () => {
    using world = await createWorld();
    await world.deposit("ada", "1");
    const call = (headers: Record<string, string>) =>
      world.call(completionsPath, { key: null, headers, body: chatBody() });
    assert.equal((await call({ [name]: world.apiKey })).status, 200);
    assert.equal((await call({ [name]: "sk_wrong" })).status, 401);
    assert.equal(
      (await call({ [name]: world.apiKey, authorization: "Bearer sk_wrong" })).status,
      401,
    );
    const { headers } = world.upstream.calls[0] ?? assert.fail();
    assert.equal(headers.get(name), null, "it is not passed on");
  });
}

Deno.test("chat user: a header of the project's choice names the user, after ours", async () => {
  using world = await createWorld({ project: { userHeader: "X-OpenWebUI-User-Id" } });
  for (const user of ["bob", "eve"]) await world.deposit(user, "1");
  const headers = { "x-openwebui-user-id": "bob" };
  assert.equal((await chat(world, nobody, { headers })).status, 200);
  assert.equal((await world.balance("bob")).balance, "0.99998");
  await chat(world, nobody, { headers: { ...headers, "x-service-user": "eve" } });
  assert.equal((await world.balance("eve")).balance, "0.99998");
  using other = await createWorld();
  assert.equal((await chat(other, nobody, { headers })).status, 400);
});
