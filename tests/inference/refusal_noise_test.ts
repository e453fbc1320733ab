import assert from "node:assert/strict";
import { readSummary } from "../../src/summaries/summary.ts";
import { chat, chatBody, completionsPath } from "../support/chat.ts";
import { signedIn, textOf } from "../support/console.ts";
import { ada, forgetWholly, rowsNaming } from "../support/forget.ts";
import { deliver, operate, subscribe } from "../support/webhooks.ts";
import { adminKey, type Body, createWorld, testPricing, type World } from "../support/world.ts";

const stripeEnv = {
  STRIPE_SECRET_KEY: "sk_test_of_the_owner",
  STRIPE_WEBHOOK_SECRET: "whsec_of_the_server",
};
const wild = { models: { "*": { input: "1", output: "2" }, ...testPricing.models } };
const limited = { limits: { user: { requestsPerMinute: 1 }, reply: "error" } };

async function rowsOf({ deps, app }: World): Promise<number> {
  await app.flush();
  const rows = await deps.kv.list({ prefix: [], limit: 20_000 });
  return rows.reduce((sum, { value }) => sum + 1 + (value?.length ?? 0) / 1024, 0);
}

async function requestsOf(world: World, query = ""): Promise<Body[]> {
  return (await operate(world, `/requests?limit=1000${query}`, { method: "GET" })).body.requests;
}

const sum = (requests: Body[]) => requests.reduce((total, { count }) => total + count, 0);

const text = (user: string) => ({ model: "test-model", user, max_tokens: 9 });
const message = [{ role: "user", content: "Hi" }];
const form = (fields: Record<string, string>) => {
  const body = new FormData();
  for (const [name, value] of Object.entries(fields)) body.append(name, value);
  body.append("file", new Blob([new Uint8Array(100)], { type: "audio/wav" }), "a.wav");
  return body;
};

interface Noise {
  path: string;
  body?(n: number): unknown;
  raw?(n: number): BodyInit;
  project?: Body;
  headers?: Record<string, string>;
  key?: string | null;
  status: number;
  /** Whether the log of requests has it. */
  isListed?: boolean;
}

const refusals: Record<string, Noise> = {
  "a chat without money": {
    path: completionsPath,
    body: (n) => chatBody({ user: `u${n}` }),
    status: 200,
  },
  "a streamed chat without money": {
    path: completionsPath,
    body: (n) => chatBody({ user: `u${n}`, stream: true }),
    status: 200,
  },
  "a chat of ever new models, with a price for all": {
    path: completionsPath,
    body: (n) => chatBody({ user: `u${n}`, model: `model-${n}` }),
    project: { pricing: wild },
    status: 200,
  },
  "a chat of a wallet that nobody authorized": {
    path: completionsPath,
    body: (n) => chatBody({ user: `u${n}` }),
    project: { mode: "shared" },
    status: 200,
  },
  "a chat of ever new models that have no price": {
    path: completionsPath,
    body: (n) => chatBody({ user: `u${n}`, model: `model-${n}` }),
    status: 404,
  },
  "a malformed chat": {
    path: completionsPath,
    body: (n) => chatBody({ user: `u${n}`, messages: n }),
    status: 400,
  },
  "a chat that is too large": {
    path: completionsPath,
    body: (n) => chatBody({ user: `u${n}` }),
    headers: { "content-length": "99000000" },
    status: 413,
  },
  "responses without money": {
    path: "/v1/responses",
    body: (n) => ({ model: "test-model", user: `u${n}`, max_output_tokens: 9, input: "Hi" }),
    status: 200,
  },
  "messages without money": {
    path: "/v1/:user/messages",
    body: () => ({ model: "test-model", max_tokens: 9, messages: message }),
    status: 200,
  },
  "completions without money": {
    path: "/v1/completions",
    body: (n) => ({ ...text(`u${n}`), prompt: "Hi" }),
    status: 200,
  },
  "embeddings without money": {
    path: "/v1/embeddings",
    body: (n) => ({ model: "test-model", user: `u${n}`, input: "Hi" }),
    status: 402,
  },
  "images of a model without their price": {
    path: "/v1/images/generations",
    body: (n) => ({ model: "test-model", user: `u${n}`, prompt: "Hi" }),
    status: 400,
  },
  "transcriptions of a model that has no price": {
    path: "/v1/audio/transcriptions",
    raw: (n) => form({ model: `model-${n}`, user: `u${n}` }),
    status: 404,
  },
  "a charge without money": {
    path: "/v1/user/charge",
    body: (n) => ({ user: `u${n}`, amount: "1" }),
    status: 200,
    isListed: false,
  },
  "a charge of a wallet that nobody authorized": {
    path: "/v1/user/charge",
    body: (n) => ({ user: `u${n}`, amount: "1" }),
    project: { mode: "shared" },
    status: 200,
    isListed: false,
  },
  "a call without a key": {
    path: completionsPath,
    body: (n) => chatBody({ user: `u${n}` }),
    key: null,
    status: 401,
    isListed: false,
  },
  "a path that does not exist": { path: "/v1/nothing", status: 404, isListed: false },
};

for (const [what, noise] of Object.entries(refusals)) {
  Deno.test(`noise: 300 times ${what}, with ever new names, cost bounded rows and lines`, async () => {
    const { path, body, raw, project = {}, headers = {}, key, status, isListed = true } = noise;
    using world = await createWorld({ env: stripeEnv, project });
    await subscribe(world, { events: ["*"] });
    const ask = async (n: number) => {
      const content = raw ? { raw: raw(n) } : body ? { body: body(n) } : {};
      const sent = raw ? { headers: { "content-type": "", ...headers } } : { headers };
      const options = { ...content, ...sent, keepClock: true, ...(key === null ? { key } : {}) };
      if (raw) return await post(world, path, raw(n));
      return await world.call(path.replace(":user", `u${n}`), options);
    };
    const before = await rowsOf(world);
    world.logged.length = 0;
    const seen = new Map<number, number>();
    for (let n = 0; n < 300; n++) {
      const response = await ask(n);
      seen.set(response.status, (seen.get(response.status) ?? 0) + 1);
      await response.body?.cancel();
    }
    assert.deepEqual([...seen], [[status, 300]]);
    const written = await rowsOf(world) - before;
    assert.ok(written < 240, `${written} rows and KiB`);
    const lines = world.logged.filter(({ event }) => event === "request");
    assert.ok(lines.length <= 10, `${lines.length} lines`);
    const folded = world.logged.filter(({ event }) => event === "requests_refused");
    const counted = folded.reduce((total, line) => total + Number(line.count), 0);
    assert.equal(lines.length + counted, 300);
    if (!isListed) return;
    const requests = await requestsOf(world);
    assert.ok(requests.length <= 12, `${requests.length} requests`);
    assert.equal(sum(requests), 300, "each of them is counted");
  });
}

/** Posts a form, whose type the request sets. */
async function post(world: World, path: string, raw: BodyInit): Promise<Response> {
  const headers = { authorization: `Bearer ${world.apiKey}` };
  return await world.app.fetch(
    new Request(`http://localhost${path}`, { method: "POST", body: raw, headers }),
  );
}

Deno.test("noise: a user who repeats a refused call is one row after the tenth in a minute", async () => {
  using world = await createWorld({ project: limited });
  await world.deposit("ada", "1");
  assert.equal((await chat(world, { user: "ada" })).response.status, 200);
  for (let n = 0; n < 60; n++) {
    assert.equal((await chat(world, { user: "ada" })).response.status, 429);
    await world.clock.advance(500);
  }
  const refused = await requestsOf(world, "&outcome=refused");
  const counts = refused.map(({ user, reason, count }) => [user, reason, count]);
  assert.deepEqual(counts.filter(([, , count]) => count === 1).length, 10);
  assert.deepEqual(counts.filter(([, , count]) => count !== 1), [[
    "ada",
    "rate_limit_exceeded",
    50,
  ]]);
});

Deno.test("noise: the figures of others, and all sums, stay exact", async () => {
  using world = await createWorld({ env: stripeEnv, project: { pricing: wild } });
  await world.deposit("ada", "1");
  for (let n = 0; n < 100; n++) {
    await chat(world, { user: `u${n}`, model: `made-up-${n}` });
    if (n % 10 === 0) await chat(world, { user: "ada" });
  }
  await world.app.flush();
  const { body } = await operate(world, "/summary", { method: "GET" });
  assert.deepEqual(body.refusals, [{ reason: "insufficient_funds", count: 100 }]);
  const completed = await requestsOf(world, "&outcome=completed");
  assert.equal(completed.length, 10);
  assert.ok(completed.every(({ count, user }) => count === 1 && user === "ada"));
  assert.equal((await requestsOf(world, "&user=u3")).length, 1, "the first are found by name");
  const csv = await world.call(`/v1/admin/projects/${world.projectId}/requests?limit=1000`, {
    key: adminKey,
    headers: { accept: "text/csv" },
  });
  const [head = "", ...lines] = (await csv.text()).trim().split("\r\n");
  assert.ok(head.endsWith(",count"));
  const total = lines.reduce((all, line) => all + Number(line.split(",").at(-1)), 0);
  assert.equal(total, 110);
  const page = textOf((await (await signedIn(world)).get("requests")).html);
  assert.match(page, /90 times/);
  const users = await operate(world, "/users", { method: "GET" });
  assert.deepEqual(
    users.body.users.map(({ user }: Body) => user),
    ["ada"],
    "no account for others",
  );
});

Deno.test("noise: every refused user gets a link that works", async () => {
  for (const mode of ["default", "shared"]) {
    using world = await createWorld({ env: stripeEnv, project: { mode } });
    for (let n = 0; n < 30; n++) {
      const { response } = await chat(world, { user: `u${n}` });
      const url = new URL(response.headers.get("x-service-paywall-url") ?? "");
      if (mode === "default" && n > 20) assert.match(url.pathname, /^\/topup\//);
      const page = await world.call(url.pathname, { key: null });
      assert.equal(page.status, 200, `${mode} ${n}`);
      assert.match(await page.text(), new RegExp(`\\bu${n}\\b`));
    }
    await world.clock.advance(2_000);
    const { response } = await chat(world, { user: "u29" });
    const { pathname } = new URL(response.headers.get("x-service-paywall-url") ?? "");
    assert.match(pathname, /^\/(t|a)\//, "a short one again");
  }
});

Deno.test("noise: events of refusals are bounded too, and the first have theirs", async () => {
  using world = await createWorld();
  await subscribe(world, { events: ["proxy.*", "request.*", "balance.*"] });
  for (let n = 0; n < 200; n++) {
    await chat(world, { user: `u${n}` });
    await world.call("/v1/user/charge", { body: { user: `u${n}`, amount: "1" } });
  }
  await deliver(world);
  const users = world.subscriber.received.map(({ body }) => body.event.subject.externalId);
  assert.ok(users.length <= 60, `${users.length} events`);
  assert.ok(users.includes("u0") && !users.includes("u199"));
});

Deno.test("noise: a new name with trial credits is no noise", async () => {
  using world = await createWorld({ project: { trialCredits: "1" } });
  for (let n = 0; n < 30; n++) {
    assert.equal((await chat(world, { user: `u${n}` })).response.status, 200);
  }
  const { body } = await operate(world, "/users", { method: "GET" });
  assert.equal(body.users.length, 20);
  assert.equal((await requestsOf(world)).length, 30);
});

Deno.test("noise: what another process counts of a user is written before the user is erased", async () => {
  using one = await createWorld({ isShared: true });
  using two = await createWorld({ shareWith: one });
  const beat = async () => {
    await one.clock.advance(500);
    for (const world of [one, two]) await world.app.beat();
  };
  await beat();
  for (let n = 0; n < 30; n++) await chat(two, { user: ada });
  let isDone = false;
  const forgetting = forgetWholly(one, { forfeit: true }).finally(() => (isDone = true));
  await one.until(async () => {
    await beat();
    return isDone;
  });
  await forgetting;
  await two.app.flush();
  assert.deepEqual(await rowsNaming(one, ada), []);
  assert.equal(sum(await requestsOf(one)), 30);
});

Deno.test("noise: of users who pay, each is counted once, also without a row of their own", async () => {
  using world = await createWorld();
  for (let n = 0; n < 30; n++) await chat(world, { user: `u${n}` });
  for (const user of ["u0", "u29", "u29", "u0"]) await world.deposit(user, "1");
  await world.app.flush();
  const rows = await world.deps.kv.list({ prefix: ["paywalled"], limit: 100 });
  assert.equal(rows.length, 9);
  const now = world.clock.now();
  const summary = await readSummary(world.deps.kv, world.projectId, { from: now, to: now + 1 });
  assert.deepEqual(summary.paywall, { saw: 30, paid: 2 });
});
