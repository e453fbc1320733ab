import assert from "node:assert/strict";
import { chat, chatBody, chatStream, until, usageOf } from "../support/chat.ts";
import { chunk, completion, readEvents, sse, usage } from "../support/upstream.ts";
import { loadTokenizer } from "../../src/pricing/tokenizer.ts";
import { adminKey, type Body, createWorld, testPricing } from "../support/world.ts";

// Loaded before the clock is moved, since loading takes real time.
await loadTokenizer();

const noUsage = {
  prompt_tokens: 0,
  completion_tokens: 0,
  total_tokens: 0,
  cost: 0,
  cost_exact: "0",
};
const link = /https:\/\/farebox\.test\/t\/\w{17}/;

function linkIn(text: string): string {
  const [url] = link.exec(text) ?? [];
  assert.ok(url, `a link in: ${text}`);
  return url;
}

Deno.test("chat paywall: a user without a balance gets a normal completion with the link", async () => {
  using world = await createWorld();
  const { status, body, response } = await chat(world);
  assert.equal(status, 200); // case 56
  const url = linkIn(body.choices[0].message.content);
  const { id, ...rest } = body;
  assert.match(id, /^chatcmpl-[0-9A-Z]{26}$/);
  assert.deepEqual(rest, {
    object: "chat.completion",
    created: 1767225600,
    model: "test-model",
    paywall: { reason: "insufficient_funds", url },
    choices: [{
      index: 0,
      message: {
        role: "assistant",
        content: `You have run out of credit. Top up here to continue: ${url}`,
        refusal: null,
      },
      logprobs: null,
      finish_reason: "stop",
    }],
    usage: noUsage,
  });
  assert.equal(response.headers.get("x-service-paywall"), "insufficient_funds");
  assert.equal(response.headers.get("x-service-paywall-url"), url);
  assert.equal(response.headers.get("x-service-activity-id"), null);
  assert.equal(world.upstream.calls.length, 0);
  assert.deepEqual(await world.activities("ada"), []);
});

for (const wantsUsage of [false, true]) {
  Deno.test(`chat paywall: streamed ${wantsUsage ? "with" : "without"} usage it is a normal stream`, async () => {
    using world = await createWorld();
    const asked = wantsUsage ? { stream_options: { include_usage: true } } : {};
    const response = await chatStream(world, asked);
    assert.equal(response.status, 200); // case 57
    assert.equal(response.headers.get("content-type"), "text/event-stream; charset=utf-8");
    assert.equal(response.headers.get("x-service-paywall"), "insufficient_funds");
    const events = await readEvents(response);
    assert.equal(events.pop(), "[DONE]");
    if (wantsUsage) {
      const { choices, usage: used } = events.pop();
      assert.deepEqual([choices, used], [[], noUsage]);
    }
    const choices = events.map((event) => event.choices[0]);
    assert.deepEqual(choices.map(({ finish_reason }) => finish_reason), [null, null, "stop"]);
    assert.equal(choices[0].delta.role, "assistant");
    linkIn(choices[1].delta.content);
    assert.deepEqual(choices[2].delta, {});
    assert.equal(new Set(events.map(({ id }) => id)).size, 1);
    for (const event of events) {
      assert.equal(event.object, "chat.completion.chunk");
      assert.equal("usage" in event, wantsUsage);
      assert.equal(event.paywall.reason, "insufficient_funds");
    }
    assert.equal(world.upstream.calls.length, 0);
  });
}

const structured: Record<string, unknown>[] = [
  { response_format: { type: "json_schema", json_schema: { name: "a", schema: {} } } },
  { tools: [{ type: "function", function: { name: "f" } }], tool_choice: "required" },
  { reasoning_effort: "high" },
];

for (const fields of structured) {
  const [name] = Object.keys(fields);
  Deno.test(`chat paywall: with ${name} it is text too, even if a little could be paid`, async () => {
    using world = await createWorld();
    assert.match((await chat(world, fields)).body.choices[0].message.content, link); // case 58
    // Enough for 500 tokens, which is less than a complete response may need.
    await world.deposit("ada", "0.0015");
    const { body } = await chat(world, fields);
    assert.equal(body.choices[0].finish_reason, "stop");
    assert.match(body.choices[0].message.content, link);
    assert.equal(world.upstream.calls.length, 0);
    await world.deposit("ada", "0.01");
    assert.equal((await chat(world, fields)).body.usage.cost_exact, "0.00002");
  });
}

Deno.test("chat paywall: the link is its user's own, and cannot be forged for another", async () => {
  using world = await createWorld();
  const urls: string[] = [];
  for (const user of ["ada", "bob <b>"]) {
    const { body } = await chat(world, { user });
    const url = new URL(linkIn(body.choices[0].message.content));
    urls.push(url.pathname);
    const page = await (await world.call(url.pathname, { key: null })).text();
    assert.ok(page.includes(user.replace("<", "&lt;").replace(">", "&gt;")), page); // case 59
  }
  const [mine = "", theirs = ""] = urls;
  assert.notEqual(mine, theirs);
  assert.ok(mine.length <= 40, mine);
  const forged = btoa(JSON.stringify([world.projectId, "eve", Date.UTC(2030, 0)]));
  const last = mine.at(-1) === "0" ? "1" : "0";
  for (
    const path of [
      mine.slice(0, -1) + last,
      mine.slice(0, -1),
      `${mine}.`,
      `${mine}0`,
      `/topup/${forged}.${mine.slice("/t/".length)}`,
      "/topup/.",
    ]
  ) {
    assert.equal((await world.call(path, { key: null })).status, 404, path); // case 59
  }
  await world.clock.advance(8 * 24 * 3_600_000);
  assert.equal((await world.call(urls[0] ?? "", { key: null })).status, 404);
});

Deno.test("chat paywall: after a deposit the same request is served", async () => {
  using world = await createWorld();
  assert.ok((await chat(world)).body.paywall);
  await world.deposit("ada", "1");
  const { body, response } = await chat(world);
  assert.equal(body.choices[0].message.content, "Hello there"); // case 60
  assert.equal(body.paywall, undefined);
  assert.equal(response.headers.get("x-service-paywall"), null);
});

Deno.test("chat paywall: the project's own URL is filled in, escaped", async () => {
  const topUpUrl = "https://pay.test/u/{user}?p={project}&a={amount}";
  using world = await createWorld({ project: { topUpUrl } });
  const { body, response } = await chat(world, { user: "a b/\u00e9?" });
  const expected = `https://pay.test/u/a%20b%2F%C3%A9%3F?p=${world.projectId}&a=`;
  assert.ok(body.choices[0].message.content.includes(expected)); // case 56
  assert.equal(body.paywall.url, expected);
  assert.equal(response.headers.get("x-service-paywall-url"), expected);
});

Deno.test("chat paywall: no URL that a project can set makes it a 5xx", async () => {
  using world = await createWorld();
  for (
    const topUpUrl of ["https://{user}.pay.test/", "https://pay.test/#{user}", "http://{user}"]
  ) {
    const body = { name: "Own address", topUpUrl, pricing: testPricing };
    const made = await world.json("/v1/admin/projects", { key: adminKey, body });
    if (made.status === 400) continue;
    for (const user of ["ada", "a b", "\u00e9", "%"]) {
      const { status } = await chat(world, { user }, { key: made.body.apiKey });
      assert.equal(status, 200, `${topUpUrl} for '${user}'`); // case 56, decision 2
    }
  }
});

/** The most that Ada's prompt can cost, counted: 8 tokens, a tenth more, and 16. */
const promptRoom = 25;

Deno.test("chat paywall: a user who can pay for a short response gets one, with the link at its end", async () => {
  using world = await createWorld();
  await world.deposit("ada", "0.0003");
  const cap = Math.floor((300 - promptRoom) / 2);
  world.upstream.once(({ body }) => {
    assert.equal(body.max_tokens, cap); // case 61
    const message = { role: "assistant", content: "A long story" };
    return completion({
      choices: [{ index: 0, message, finish_reason: "length" }],
      usage: usage(10, cap),
    });
  });
  const { body } = await chat(world);
  const { content } = body.choices[0].message;
  assert.match(content, /^A long story\n\nYour credit paid for this part of the answer\./);
  linkIn(content);
  assert.equal(body.choices[0].finish_reason, "length");
  assert.equal((await usageOf(world))[0]?.amount, ((10 + 2 * cap) / 1e6).toFixed(6));
  assert.ok(Number((await world.balance("ada")).balance) >= 0);
});

Deno.test("chat paywall: a clamped stream that reaches its bound ends with the link", async () => {
  using world = await createWorld();
  await world.deposit("ada", "0.0003");
  world.upstream.once(() => sse([chunk({ content: "A long story" }), chunk({}, "length")]));
  const events = await readEvents(await chatStream(world));
  const contents = events.slice(0, -1).map((event) => event.choices[0].delta.content);
  assert.equal(contents.length, 3); // case 61
  linkIn(contents[1]);
  assert.equal(events[2].choices[0].finish_reason, "length");
  assert.equal((await usageOf(world))[0]?.usage.outputTokens, 3, "our own text is not charged");
});

Deno.test("chat paywall: a response that ends by itself, or at the caller's bound, has no link", async () => {
  using world = await createWorld();
  await world.deposit("ada", "0.0003");
  assert.equal((await chat(world)).body.choices[0].message.content, "Hello there");
  const choices = [{ index: 0, message: { content: "cut" }, finish_reason: "length" }];
  world.upstream.once(() => completion({ choices }));
  const { body } = await chat(world, { max_tokens: 5 });
  assert.equal(body.choices[0].message.content, "cut"); // case 61
});

const edges: [string, number, boolean][] = [
  ["16 tokens can be paid", promptRoom + 32, true],
  ["one unit less", promptRoom + 31, false],
];

for (const [name, millionths, answered] of edges) {
  Deno.test(`chat paywall: ${answered ? "open" : "closed"} when ${name}`, async () => { // case 61
    using world = await createWorld();
    await world.deposit("ada", (millionths / 1e6).toFixed(6));
    const { body } = await chat(world);
    assert.equal(body.paywall === undefined, answered);
  });
}

Deno.test("chat paywall: closed to a short response of a model that reasons before it writes", async () => {
  const thinker = { ...testPricing.models["test-model"], reasoning: true };
  using world = await createWorld({ project: { pricing: { models: { "test-model": thinker } } } });
  await world.deposit("ada", "0.0005");
  assert.equal((await chat(world)).body.paywall?.reason, "insufficient_funds");
  assert.equal(world.upstream.calls.length, 0);
});

Deno.test("chat paywall: fifty calls at once with money for ten never spend more than the balance", async () => {
  using world = await createWorld();
  const bytes = JSON.stringify(chatBody({ max_tokens: 5 })).length;
  const amount = ((bytes + 10) * 10 / 1e6).toFixed(6);
  await world.deposit("ada", amount);
  world.upstream.reply(async () => {
    await world.clock.sleep(500);
    return completion({ usage: usage(bytes, 5) });
  });
  const asked = Array.from({ length: 50 }, () => chat(world, { max_tokens: 5 }));
  const answers = await until(world, Promise.all(asked));
  const paid = answers.filter(({ body }) => !body.paywall);
  const walled = answers.filter(({ body }) => body.paywall);
  assert.ok(answers.every(({ status }) => status === 200));
  assert.equal(paid.length, 10); // case 62
  assert.equal(paid.length + walled.length, 50);
  const charged = (await usageOf(world)).map(({ amount }) => Math.round(Number(amount) * 1e6));
  const total = charged.reduce((sum, millionths) => sum + millionths, 0);
  assert.equal(charged.length, paid.length);
  assert.ok(total <= Math.round(Number(amount) * 1e6));
  assert.deepEqual(await world.balance("ada"), { balance: "0", held: "0", available: "0" });
});

/**
 * A first response that holds the whole balance until it is released, and a second call behind it.
 */
async function queued(afterMs: number): Promise<{ second: Body; waited: number }> {
  using world = await createWorld();
  await world.deposit("ada", "0.0003");
  world.upstream.once(async () => {
    await world.clock.sleep(afterMs);
    return completion();
  });
  const first = chat(world);
  await world.clock.advance(0);
  const startedAt = world.clock.now();
  let waited = 0;
  const second = chat(world).finally(() => (waited = world.clock.now() - startedAt));
  const { body } = await until(world, second);
  await until(world, first, 30_000);
  assert.equal((await world.balance("ada")).held, "0");
  return { second: body, waited };
}

Deno.test("chat paywall: a request waits for the holds of calls that end soon", async () => {
  const { second, waited } = await queued(1_000);
  assert.equal(second.paywall, undefined); // case 62
  assert.ok(waited >= 1_000 && waited < 1_500, `${waited} ms`);
});

Deno.test("chat paywall: after two seconds it reports that earlier calls are still running", async () => {
  const { second, waited } = await queued(30_000);
  assert.match(second.choices[0].message.content, /^Your earlier answers are still running/);
  linkIn(second.choices[0].message.content);
  assert.equal(second.paywall.reason, "balance_held");
  assert.ok(waited >= 2_000 && waited < 2_500, `${waited} ms`);
});
