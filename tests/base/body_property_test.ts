import assert from "node:assert/strict";
import fc from "fast-check";
import { decodeAccount } from "../../src/ledger/account.ts";
import { accountKey } from "../../src/store/keys.ts";
import { chatBody } from "../support/chat.ts";
import { always, anyText, jsonText, spoiled } from "../support/property.ts";
import { deliver, subscribe } from "../support/webhooks.ts";
import {
  adminKey,
  type Body,
  type CallOptions,
  createWorld,
  type World,
} from "../support/world.ts";

/** An endpoint that reads JSON, and a valid body for it. */
interface Endpoint {
  path: string;
  body: object;
  method?: string;
  key?: string;
}

const fullChat = chatBody({
  messages: [
    { role: "system", content: "Be brief." },
    { role: "user", name: "ada", content: [{ type: "text", text: "Hi" }] },
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }],
    },
    { role: "tool", tool_call_id: "c", content: "5" },
  ],
  n: 1,
  max_tokens: 20,
  max_completion_tokens: 20,
  temperature: 0.5,
  tools: [{ type: "function", function: { name: "f", parameters: { type: "object" } } }],
  response_format: { type: "text" },
  reasoning_effort: "none",
  modalities: ["text"],
  service_tier: "auto",
  seed: 5,
});

const fullProject = {
  name: "Another",
  ownerUserId: "owner",
  currency: "usd",
  mode: "default",
  pricing: {
    catalogue: true,
    markupPercent: "10",
    requestFee: "0.001",
    models: {
      "test-model": {
        input: "1",
        cachedInput: "0.1",
        cacheWrite: "1.25",
        output: "2",
        maxOutputTokens: 1000,
        minOutputTokens: 1,
        mediaTokens: { image_url: 100 },
        reasoning: false,
        onAbort: "drain",
        displayName: "Test",
      },
    },
  },
  upstream: { url: "https://other.test/v1", apiKey: "sk-upstream", maxTokensField: "max_tokens" },
  topUpUrl: "https://shop.example/pay/{user}",
  userSource: "any",
  maxOutputTokens: 500,
  allowedFields: ["models"],
  unknownFields: "pass",
  billingEvents: true,
  messages: { en: { insufficient_funds: "Pay {{url}}" } },
  topUp: { amounts: ["5", "10"], min: "1", max: "100", checkoutUrl: null },
  stripe: { secretKey: "sk_test_1", webhookSecret: "whsec_12" },
  trialCredits: "1",
  lowBalance: "0.5",
};

/**
 * A world with a balance, a webhook subscriber for every event, and a project that tests may
 * change.
 */
async function openWorld() {
  const world = await createWorld();
  await world.deposit("ada", "100");
  const { body: { activityId } } = await world.json("/v1/user/charge", {
    body: { user: "ada", amount: "50" },
  });
  // So that nothing of Bob's balance can be taken back.
  const spent = { user: "bob", amount: "5" };
  const { body: deposit } = await world.json("/v1/user/balance/deposit", { body: spent });
  await world.json("/v1/user/charge", { body: spent });
  const { id } = await subscribe(world);
  const other = await world.makeProject(fullProject);
  const inProject = (projectId: string, path: string) => `/v1/admin/projects/${projectId}${path}`;
  const money = { user: "ada", amount: "1.5", metadata: { order: "1", lines: [{ sku: "a" }] } };
  const subscription = inProject(world.projectId, `/subscriptions/${id}`);
  const endpoints: Endpoint[] = [
    { path: "/v1/user/balance/deposit", body: money },
    { path: "/v1/user/charge", body: money },
    { path: "/v1/user/refund", body: { ...money, activityId, amount: "0.001" } },
    { path: "/v1/user/refund", body: { activityId: deposit.activityId, amount: "0.001" } },
    { path: "/v1/chat/completions", body: fullChat },
    {
      path: "/v1/chat/completions",
      body: { ...fullChat, stream: true, stream_options: { include_usage: true } },
    },
    { path: "/v1/ada/chat/completions", body: chatBody() },
    {
      path: "/v1/webhooks/subscriptions",
      body: {
        url: "https://hooks.example.com/a",
        events: ["archived", "integration.*"],
        description: "ours",
        customHeaders: { "X-Team": "a" },
        secret: "a-secret-of-16-chars",
      },
    },
    { path: "/v1/admin/projects", body: fullProject, key: adminKey },
    {
      path: inProject(other.projectId, ""),
      body: withoutFixed(fullProject),
      method: "PATCH",
      key: adminKey,
    },
    {
      path: inProject(other.projectId, "/keys"),
      body: { name: "k", scopes: ["chat"], defaultUser: "ada", user: "ada" },
      key: adminKey,
    },
    {
      path: subscription,
      body: {
        isActive: true,
        rotateSecret: true,
        secret: "another-secret-of-ours",
        overlapSeconds: 60,
      },
      method: "PATCH",
      key: adminKey,
    },
    { path: `${subscription}/redeliver`, body: { since: "2026-01-01T00:00:00Z" }, key: adminKey },
  ];
  return { world, other, endpoints };
}

/** Fields that a project update may name. */
function withoutFixed({ currency: _currency, mode: _mode, ...rest }: typeof fullProject) {
  return rest;
}

/** OpenAI's error body. */
function checkError(body: Body): void {
  assert.deepEqual(Object.keys(body), ["error"]);
  const { message, type, param, code } = body.error;
  assert.deepEqual(Object.keys(body.error).sort(), ["code", "message", "param", "type"]);
  assert.ok(typeof message === "string" && message.length > 0);
  assert.ok(message.length < 2_000, `a message of ${message.length} characters`);
  assert.equal(typeof type, "string");
  assert.ok(param === null || typeof param === "string");
  assert.ok(code === null || typeof code === "string");
}

/** Posts the body, reads the response to its end, and asserts that callers can use it. */
async function checkAnswer(world: World, endpoint: Endpoint | undefined, raw: BodyInit) {
  assert.ok(endpoint);
  const { path, method = "POST", key = world.apiKey } = endpoint;
  world.logged.length = 0;
  const response = await world.call(path, { method, raw, key });
  const text = await response.text();
  const told = `${path} ${response.status} ${text.slice(0, 300)} ${
    JSON.stringify(world.logged).slice(0, 500)
  }`;
  assert.ok(response.status < 500, told);
  assert.ok(!world.logged.some(({ level }) => level === "error"), told);
  if (response.status >= 400) return checkError(JSON.parse(text));
  assert.ok(response.status === 200 || response.status === 201 || response.status === 202, told);
  if (!/event-stream/.test(response.headers.get("content-type") ?? "")) JSON.parse(text);
  else assert.match(text, /data: \[DONE\]\n\n$/);
}

/** Asserts that no account is below zero, or holds more than its balance. */
async function checkAccounts(world: World): Promise<void> {
  const prefix = accountKey("", "").slice(0, 1);
  for (const { value } of await world.deps.kv.list({ prefix, limit: 10_000 })) {
    const { balance, held } = decodeAccount(value);
    assert.ok(held >= 0n && balance >= held, `${balance} with ${held} held`);
  }
}

Deno.test("body: any JSON that is nearly valid gets a response or a refusal as OpenAI's, on every endpoint", async () => {
  const { world, endpoints } = await openWorld();
  using _ = world;
  const cases = fc.constantFrom(...endpoints.keys()).chain((at) =>
    fc.tuple(fc.constant(at), spoiled(endpoints[at]?.body ?? {}))
  );
  await always(
    1_300,
    fc.asyncProperty(cases, async ([at, text]) => {
      await checkAnswer(world, endpoints[at], text);
    }),
  );
  await deliver(world);
  await checkAccounts(world);
});

Deno.test("body: any JSON gets a response or a refusal as OpenAI's, on every endpoint", async () => {
  const { world, endpoints } = await openWorld();
  using _ = world;
  await always(
    400,
    fc.asyncProperty(fc.constantFrom(...endpoints.keys()), jsonText, async (at, text) => {
      await checkAnswer(world, endpoints[at], text);
    }),
  );
  await checkAccounts(world);
});

Deno.test("body: any bytes are refused as OpenAI refuses them, on every endpoint", async () => {
  const { world, endpoints } = await openWorld();
  using _ = world;
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 40 }),
    anyText.map((text) => new TextEncoder().encode(text)),
  );
  await always(
    300,
    fc.asyncProperty(fc.constantFrom(...endpoints.keys()), bytes, async (at, bytes) => {
      await checkAnswer(world, endpoints[at], bytes);
    }),
  );
});

Deno.test("body: the bodies that these tests spoil are valid before", async () => {
  const { world, endpoints } = await openWorld();
  using _ = world;
  for (const { path, body, method = "POST", key = world.apiKey } of endpoints) {
    const response = await world.call(path, { method, body, key });
    assert.ok(response.ok, `${path}: ${await response.text()}`);
  }
});

Deno.test("body: a project created or changed with any accepted settings keeps serving chats", async () => {
  const { world } = await openWorld();
  using _ = world;
  let made = 0;
  await always(
    400,
    fc.asyncProperty(spoiled(fullProject), async (raw) => {
      const answer = await world.json("/v1/admin/projects", { raw, key: adminKey });
      if (answer.status !== 201) return checkError(answer.body);
      made++;
      const key = answer.body.apiKey;
      const headers = { "x-service-user": "ada" };
      world.logged.length = 0;
      const ask = async (path: string, options: CallOptions = {}) => {
        const response = await world.call(path, { key, headers, ...options });
        const text = await response.text();
        assert.ok(response.status < 500, `${path} ${response.status} ${text}`);
        return text;
      };
      await ask("/v1/user/balance");
      await ask("/v1/models");
      const { url } = JSON.parse(await ask("/v1/user/balance/topup"));
      // A project may redirect its users to any site.
      if (url?.startsWith("https://farebox.test/")) await ask(new URL(url).pathname);
      await ask("/v1/chat/completions", { body: chatBody() });
    }),
  );
  assert.ok(made > 30, `${made} were made`);
  await checkAccounts(world);
});

Deno.test("body: redelivery accepts any valid time, and refuses anything else", async () => {
  const { world, endpoints } = await openWorld();
  using _ = world;
  const endpoint = endpoints.at(-1);
  const since = fc.oneof(
    fc.date({ min: new Date(0), max: new Date("2050-01-01"), noInvalidDate: true })
      .map((date) => date.toISOString()),
    fc.constantFrom(
      "0000-01-01T00:00:00Z",
      "9999-12-31T23:59:59.999+23:59",
      "1969-12-31T23:59:59Z",
    ),
    fc.constantFrom("2026-02-30T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01", "now"),
    anyText,
  );
  let begun = 0;
  await always(
    120,
    fc.asyncProperty(since, async (since) => {
      await checkAnswer(world, endpoint, JSON.stringify({ since }));
      begun += world.logged.some(({ status }) => status === 202) ? 1 : 0;
    }),
  );
  await world.app.sweep();
  assert.ok(begun > 30, `${begun} were begun`);
});
