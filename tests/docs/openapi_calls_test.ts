import assert from "node:assert/strict";
import { createApp } from "../../src/app.ts";
import type { Mail } from "../../src/deps.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { confirmAddresses } from "../support/alerts.ts";
import { apiDocument, checkedAnswer, faultOfDelivery, resolved } from "../support/api_document.ts";
import { metricsToken } from "../support/prometheus.ts";
import { deliver, logs, operate, subscribe } from "../support/webhooks.ts";
import { connectionKey } from "../../src/store/keys.ts";
import { passkeyWrite } from "../../src/wallets/store.ts";
import { allow, Device, env, tellServer } from "../support/wallets.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

/** Real ids, by the names that the document's paths and bodies give them. */
type Ids = Record<string, string>;

interface Given {
  project?: Record<string, unknown>;
  /** Preconditions that are not in the request. */
  before?(world: World): Promise<unknown>;
  /** A body with real ids, in place of the document's examples. */
  body?(ids: Ids): unknown;
  /** A call that cannot be made from the document alone. */
  call?(world: World): Promise<{ status: number }>;
}

const pricing = {
  models: {
    "gpt-4o-mini": { input: "0.30", output: "1.20" },
    "text-embedding-3-small": { input: "0.02", output: "0" },
    "dall-e-3": { input: "0", output: "0", images: { "*": "0.04" } },
    "gpt-image-1": { input: "5", output: "0", imageOutput: "40" },
    "tts-1": { input: "0", output: "0", characters: "15" },
    "whisper-1": { input: "0", output: "0", audioMinutes: "0.006" },
    "claude-sonnet-5": { input: "3", output: "15" },
  },
};
const stripe = { secretKey: "sk_test_of_the_owner", webhookSecret: env.STRIPE_WEBHOOK_SECRET };
const stripeEvent = {
  id: "evt_1",
  object: "event",
  type: "customer.created",
  data: { object: {} },
};

/** What an operation needs besides its examples. */
const given: Record<string, Given> = {
  createCompletion: { before: completing },
  createEmbedding: { before: embedding },
  createResponse: { before: responding },
  createUsersResponse: { before: responding },
  createMessage: { before: messaging },
  createUsersMessage: { before: messaging },
  createUsersMessageBelowBase: { before: messaging },
  createUsersEmbedding: { before: embedding },
  createImage: { before: answering({ data: [{ b64_json: "AAAA" }] }) },
  createUsersImage: { before: answering({ data: [{ b64_json: "AAAA" }] }) },
  createSpeech: { before: speaking },
  createUsersSpeech: { before: speaking },
  createTranscription: { before: answering({ text: "Hi" }) },
  createUsersTranscription: { before: answering({ text: "Hi" }) },
  createTranslation: { before: answering({ text: "Hi" }) },
  createUsersTranslation: { before: answering({ text: "Hi" }) },
  createModeration: { before: answering({ results: [] }) },
  createUsersModeration: { before: answering({ results: [] }) },
  createUsersCompletion: { before: completing },
  refund: { body: ({ activityId }) => ({ activityId, amount: "0.25" }) },
  refundUser: { body: ({ activityId }) => ({ activityId, amount: "0.25" }) },
  getConnection: { project: { name: "Helper", mode: "shared" } },
  disconnect: { project: { name: "Helper", mode: "shared" }, before: connected },
  disconnectByGet: { project: { name: "Helper", mode: "shared" }, before: connected },
  findWallets: {
    call: (world) =>
      world.json(`/v1/admin/wallets?projectId=${world.projectId}&user=ada`, { key: adminKey }),
  },
  joinWallet: { body: () => joining },
  withdrawWalletJoin: { before: askToJoin },
  forgetUser: { body: () => ({ forfeit: true }) },
  backup: { call: backUp },
  reconcileProjectsStripe: { project: { stripe } },
  takeStripeEvent: { call: (world) => tellServer(world, stripeEvent) },
  takeProjectsStripeEvent: {
    project: { stripe },
    call: (world) =>
      tellServer(world, stripeEvent, stripe.webhookSecret, `/v1/stripe/${world.projectId}`),
  },
};

/** Two wallets: nobody can open the first, and the second has a passkey. */
const wallets = ["per_01K9Z0C8Q4R7T2V5X8Z1B3D5F7", "per_01K9Z0C8Q4R7T2V5X8Z1B3D5F8"] as const;
const joining = { into: wallets[1], reasons: { from: "It was on a lost device." } };

async function makeWallets({ deps: { committer }, projectId }: World): Promise<void> {
  const passkey = { personId: wallets[1], publicKey: "", counter: 0, createdAt: 0, answered: [] };
  const sets = [
    ...wallets.map((id) => ({ key: connectionKey(id, projectId, "ada"), value: new Uint8Array() })),
    ...passkeyWrite("AAAA", passkey, null).sets,
  ];
  await committer.commit({ checks: [], sets, deletes: [] });
}

async function askToJoin(world: World): Promise<void> {
  const path = `/v1/admin/wallets/${wallets[0]}/join`;
  assert.equal((await world.json(path, { key: adminKey, body: joining })).status, 200);
}

/** The world's store is in memory: another service on it has a file to copy. */
async function backUp(world: World): Promise<Response> {
  const takeSnapshot = async () => ({
    bytes: 3,
    stream: new Response("abc").body ?? assert.fail(),
  });
  const app = await createApp({ ...world.deps, metrics: createMetrics(), takeSnapshot });
  const headers = { authorization: `Bearer ${adminKey}` };
  const request = new Request("http://localhost/v1/admin/backup", { headers });
  const response = await checkedAnswer(request, await app.fetch(request), assert.fail);
  await response.bytes();
  return response;
}

/** The upstream answers legacy completions. */
async function completing(world: World): Promise<void> {
  const choices = [{ index: 0, text: "Hi", logprobs: null, finish_reason: "stop" }];
  const usage = { prompt_tokens: 2, completion_tokens: 1, total_tokens: 3 };
  world.upstream.reply(() => Response.json({ object: "text_completion", choices, usage }));
}

/** The upstream answers with a message. */
async function messaging(world: World): Promise<void> {
  const content = [{ type: "text", text: "Hello" }];
  const usage = { input_tokens: 2, output_tokens: 1 };
  world.upstream.reply(() => Response.json({ type: "message", content, usage }));
}

/** The upstream answers with embeddings. */
async function embedding(world: World): Promise<void> {
  const data = [{ object: "embedding", index: 0, embedding: [0.5] }];
  const usage = { prompt_tokens: 2, total_tokens: 2 };
  world.upstream.reply(() => Response.json({ object: "list", data, usage }));
}

/** The upstream answers with this object. */
function answering(body: Body) {
  return async (world: World): Promise<void> => world.upstream.reply(() => Response.json(body));
}

async function speaking(world: World): Promise<void> {
  const headers = { "content-type": "audio/mpeg" };
  world.upstream.reply(() => new Response("ID3", { headers }));
}

async function connected(world: World): Promise<void> {
  await allow(new Device(world));
}

/** A response of the upstream, by its id. */
function responseWith(id: string): Response {
  const content = [{ type: "output_text", text: "Hi", annotations: [] }];
  const output = [{ id: "msg_1", type: "message", role: "assistant", content }];
  const usage = { input_tokens: 2, output_tokens: 1, total_tokens: 3 };
  return Response.json({ id, object: "response", status: "completed", output, usage });
}

/** The upstream answers with responses. */
async function responding(world: World): Promise<void> {
  world.upstream.reply(() => responseWith("resp_1"));
}

/** Has the upstream keep a response for ada; returns its id. */
async function keepResponse(world: World): Promise<string> {
  const id = "resp_68a1f0c2e4b0819f";
  world.upstream.once(() => responseWith(id));
  const body = { model: "gpt-4o-mini", input: "Hello", user: "ada" };
  const { status } = await world.json("/v1/responses", { body });
  assert.equal(status, 200);
  return id;
}

/** A world that has one of each resource that paths name. */
async function prepare({ project = {}, before }: Given): Promise<{ world: World; ids: Ids }> {
  const mails: Mail[] = [];
  const world = await createWorld({
    env: { ...env, METRICS_TOKEN: metricsToken },
    project: { pricing, alerts: { emails: ["owner@my.app"] }, ...project },
    sendMail: (mail) => Promise.resolve(void mails.push(mail)),
  });
  await confirmAddresses(world, mails);
  const { projectId } = world;
  const ids: Ids = { projectId, user: "ada", model: "gpt-4o-mini", walletId: wallets[0] };
  if (project.mode !== "shared") {
    const { id: subscriptionId } = await subscribe(world);
    await world.deposit("ada", "10");
    await deliver(world);
    const [entry] = await logs(world);
    const [activity] = await world.activities("ada");
    const since = { since: "2020-01-01T00:00:00Z" };
    const job = await operate(world, `/subscriptions/${subscriptionId}/redeliver`, { body: since });
    const keys = await operate(world, "/keys", { method: "GET" });
    const responseId = await keepResponse(world);
    Object.assign(ids, {
      subscriptionId,
      deliveryId: entry?.id,
      responseId,
      activityId: activity?.id,
      jobId: job.body.redelivery.id,
      keyId: keys.body.keys[0].id,
    });
  }
  await makeWallets(world);
  await before?.(world);
  return { world, ids };
}

interface Operation {
  path: string;
  method: string;
  described: Body;
}

const operations: Operation[] = Object.entries<Body>(apiDocument().document.paths).flatMap((
  [path, methods],
) => Object.entries<Body>(methods).map(([method, described]) => ({ path, method, described })));

/** The path of an operation, with these ids in it, and the examples of its query. */
function addressOf({ path, described }: Operation, ids: Ids, query = queryOf(described)): string {
  const filled = path.replace(
    /\{(\w+)\}/g,
    (_, name) => ids[name] ?? assert.fail(`prepare() has no ${name}`),
  );
  return `${filled}?${new URLSearchParams(query)}`;
}

function parametersOf({ parameters = [] }: Body, place: string): Body[] {
  return parameters.map(resolved).filter((parameter: Body) => parameter.in === place);
}

function queryOf(described: Body): Record<string, string> {
  return Object.fromEntries(
    parametersOf(described, "query").flatMap(({ name, schema }) =>
      schema.example === undefined ? [] : [[name, String(schema.example)]]
    ),
  );
}

/** A key with the scope that the operation needs. */
function keyFor({ security }: Body, world: World): string | null {
  const [need] = security;
  if (!need) return null;
  if (need.metricsToken) return metricsToken;
  return need.operatorKey ? adminKey : world.apiKey;
}

/** The header that names the user, where neither the path nor the body of the example does. */
function userOf({ described, path }: Operation, body: unknown): Record<string, string> {
  const isNamed = !described.requestBody || path.includes("{user}") || Object(body).user;
  const takesQuery = parametersOf(described, "query").some(({ name }) => name === "user");
  const takesHeader = parametersOf(described, "header")
    .some(({ name }) => name === "X-Service-User");
  return takesHeader && !takesQuery && !isNamed ? { "x-service-user": "ada" } : {};
}

async function callFor(world: World, operation: Operation, options: Body): Promise<Response> {
  const { address = addressOf(operation, options.ids), body, accept, key } = options;
  const form = operation.described.requestBody?.content[formType] && body ? asForm(body) : null;
  const response = await world.call(address, {
    method: operation.method.toUpperCase(),
    key: key === undefined ? keyFor(operation.described, world) : key,
    ...(body === undefined ? {} : { body }),
    ...(form ? { raw: await form.bytes() } : {}),
    headers: {
      ...userOf(operation, body),
      ...(accept ? { accept } : {}),
      ...(form ? { "content-type": form.headers.get("content-type") ?? "" } : {}),
      ...options.headers,
    },
  });
  // Read to its end: errors may appear on the way.
  await response.text();
  return response;
}

const formType = "multipart/form-data";

function asForm(fields: Body): Response {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) {
    form.append(name, name === "file" ? new Blob(["ID3"]) : String(value));
  }
  return new Response(form);
}

for (const operation of operations) {
  const { described, path, method } = operation;
  const special = given[described.operationId] ?? {};
  const content = described.requestBody?.content["application/json"] ??
    described.requestBody?.content[formType];

  Deno.test(`openapi: ${method.toUpperCase()} ${path} responds as documented`, async () => {
    const { world, ids } = await prepare(special);
    using _ = world;
    if (special.call) return assert.equal((await special.call(world)).status, 200);
    const examples: Body[] = Object.values(content?.examples ?? { none: {} });
    const bodies = special.body ? [special.body(ids)] : examples.map(({ value }) => value);
    const written = Object.entries<Body>(described.responses)
      .filter(([status]) => Number(status) < 300);
    const types = written.flatMap(([, answer]) => Object.keys(answer.content ?? {}));
    for (const body of bodies) {
      for (const accept of types) {
        const { status } = await callFor(world, operation, { ids, body, accept });
        assert.ok(written.some(([one]) => Number(one) === status), `${status}`);
      }
    }
  });

  Deno.test(`openapi: ${method.toUpperCase()} ${path} refuses as documented`, async () => {
    const { world, ids } = await prepare({ ...special, before: () => Promise.resolve() });
    using _ = world;
    const body = content && Object.values<Body>(content.examples)[0]?.value;
    // If the body names a user, the query does not.
    const { user: _user, ...unnamed } = body ?? {};
    const expect = async (status: number, options: Body) => {
      const response = await callFor(world, operation, { ids, body, ...options });
      assert.equal(response.status, status, JSON.stringify(options));
    };
    if (described.security.length > 0) {
      await expect(401, { key: null });
      await expect(401, { key: "sk_wrong" });
    }
    if (described.security[0]?.projectKey) {
      const other = described.security[0].projectKey[0] === "chat" ? "money" : "chat";
      const { body: made } = await operate(world, "/keys", { body: { scopes: [other] } });
      await expect(403, { key: made.apiKey });
    }
    if (content) {
      const optional = described.requestBody.required === false;
      if (!optional) await expect(400, { body: { nonsense: true } });
      await expect(400, { body: [] });
      await expect(415, { headers: { "content-type": "text/plain" } });
    }
    for (const { name } of parametersOf(described, "path")) {
      // Stripe's webhook has one answer for all that is not signed.
      if (name === "user" || path.startsWith("/v1/stripe/")) continue;
      await expect(404, { ids: { ...ids, [name]: name === "model" ? "no/such" : "pw_0" } });
    }
    for (const { name, schema } of parametersOf(described, "query")) {
      const wrong = schema.maxLength ? "u".repeat(schema.maxLength + 1) : "§";
      const free = schema.type === "string" && !schema.maxLength && !schema.enum &&
        name !== "cursor";
      const query = { ...queryOf(described), [name]: wrong };
      const address = addressOf(operation, ids, query);
      if (!free) await expect(400, { address, body: content && unnamed });
    }
    if (parametersOf(described, "header").some(({ name }) => name === "X-Service-User")) {
      const address = addressOf(operation, ids, {});
      const headers = { "x-service-user": "u".repeat(129) };
      const named = path.includes("{user}");
      if (!named) await expect(400, { address, body: content && unnamed, headers });
    }
  });
}

Deno.test("openapi: what a subscriber receives is checked against the document too", async () => {
  const { world } = await prepare({});
  using _ = world;
  await world.json("/v1/user/charge", { body: { user: "ada", amount: "0.5" } });
  await world.json("/v1/user/charge", { body: { user: "ada", amount: "500" } });
  await deliver(world);
  const types = new Set(world.subscriber.types());
  assert.ok(types.size >= 4, [...types].join(" "));
  const { headers, body } = world.subscriber.received[0] ?? assert.fail();
  assert.equal(faultOfDelivery(headers, body), "");
  const spoiled = { ...body, event: { ...body.event, createdAt: "yesterday" } };
  assert.match(faultOfDelivery(headers, spoiled), /createdAt/);
  assert.match(faultOfDelivery({ ...headers, "x-service-signature": "no" }, body), /pattern/);
});

Deno.test("openapi: an undocumented response is detected", async () => {
  const request = new Request("http://localhost/v1/user/balance?user=ada");
  const complaints: string[] = [];
  const check = (body: unknown, status = 200, headers: HeadersInit = { "x-request-id": "r" }) =>
    checkedAnswer(request, Response.json(body, { status, headers }), (fault) => {
      complaints.push(fault);
    });
  await assert.rejects(check({ balance: 5 }), /required/);
  await assert.rejects(check({}, 418), /418 is not in the API document/);
  await assert.rejects(check({}, 200, {}), /X-Request-Id/);
  await assert.rejects(check({}, 200, { "x-request-id": "r", "retry-after": "1" }), /retry-after/);
  const error = { message: "m", type: "t", param: null, code: "made_up" };
  await assert.rejects(check({ error }, 400), /allowed values/);
  const chat = new Request("http://localhost/v1/chat/completions", { method: "POST" });
  const stream = new Response('data: {"id":5}\n\ndata: [DONE]\n\n', {
    headers: { "x-request-id": "r", "content-type": "text/event-stream" },
  });
  await (await checkedAnswer(chat, stream, (fault) => complaints.push(fault))).text();
  assert.equal(complaints.length, 1);
});
