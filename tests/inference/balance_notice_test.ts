import assert from "node:assert/strict";
import { formatForPeople, fromDecimal, parseAmount, zero } from "../../src/base/money.ts";
import { chat, chatStream, usageOf } from "../support/chat.ts";
import { chunk, completion, helloStream, readEvents, sse, usage } from "../support/upstream.ts";
import { adminKey, createWorld, type World } from "../support/world.ts";

const link = "https://my.app/topup?user=ada";
const messages = {
  en: { insufficient_funds: "{{name}}: {{balance}} left. Go to {{url}}" },
  de: { insufficient_funds: "Guthaben leer: {{url}}", low_balance: "Bald leer: {{url}}" },
  "pt-br": { insufficient_funds: "Sem saldo: {{url}}" },
};

async function speakingWorld(): Promise<World> {
  return await createWorld({
    project: { name: "Helper", topUpUrl: "https://my.app/topup?user={user}", messages },
  });
}

for (
  const [languages, expected] of [
    [null, `Helper: $0.00 left. Go to ${link}`],
    ["de", `Guthaben leer: ${link}`],
    ["de-CH, en;q=0.5", `Guthaben leer: ${link}`],
    ["fr, de;q=0.5, en;q=0.9", `Helper: $0.00 left. Go to ${link}`],
    ["pt-BR", `Sem saldo: ${link}`],
    ["pt", `Helper: $0.00 left. Go to ${link}`],
    ["de;q=0", `Helper: $0.00 left. Go to ${link}`],
    ["*", `Helper: $0.00 left. Go to ${link}`],
    [";;;,,=", `Helper: $0.00 left. Go to ${link}`],
  ] as const
) {
  Deno.test(`messages: a caller with '${languages}' gets the project's message in it`, async () => {
    using world = await speakingWorld();
    const headers = languages === null ? {} : { "accept-language": languages };
    const { body } = await chat(world, {}, { headers });
    assert.equal(body.choices[0].message.content, expected);
    const charged = await world.json("/v1/user/charge", {
      body: { user: "ada", amount: "1" },
      headers,
    });
    assert.equal(charged.body.message, expected);
  });
}

Deno.test("messages: a template without the link, or with an unknown placeholder, is 400", async () => {
  using world = await createWorld();
  const path = `/v1/admin/projects/${world.projectId}`;
  for (
    const bad of [
      { en: { insufficient_funds: "no link" } },
      { en: { insufficient_funds: "{{url}} {{user}}" } },
      { en: { other: "{{url}}" } },
      { EN: { cut: "{{url}}" } },
      { en: { cut: `{{url}}${"x".repeat(1000)}` } },
      { en: "{{url}}" },
    ]
  ) {
    const options = { method: "PATCH", key: adminKey, body: { messages: bad } };
    const { status, body } = await world.json(path, options);
    assert.equal(status, 400, JSON.stringify(bad));
    assert.match(body.error.param, /^messages/);
  }
});

Deno.test("messages: a response warns of a low balance, whole and streamed, and not earlier", async () => {
  using world = await createWorld({ project: { lowBalance: "1", messages } });
  await world.deposit("ada", "1.00003");
  const headers = { "accept-language": "de" };
  const ask = () => chat(world, {}, { headers });
  const warned = /^Hello there\n\nBald leer: https:\/\/farebox\.test\/t\//;
  assert.equal((await ask()).body.choices[0].message.content, "Hello there");
  assert.equal((await world.balance("ada")).balance, "1.00001", "not below it yet");
  assert.match((await ask()).body.choices[0].message.content, warned, "it brought it below");
  world.upstream.once(helloStream);
  const text = await (await chatStream(world, {}, { headers })).text();
  const said = text.split("\n\n").filter((frame) => frame.startsWith("data: {"))
    .map((frame) => JSON.parse(frame.slice(6)).choices[0]?.delta.content ?? "").join("");
  assert.match(said, warned);
  assert.ok(text.indexOf("Bald leer") < text.indexOf('"finish_reason":"stop"'));
  const call = { id: "c", type: "function", function: { name: "f", arguments: "{}" } };
  const message = { role: "assistant", content: null, tool_calls: [call] };
  world.upstream.once(() =>
    completion({ choices: [{ index: 0, message, finish_reason: "tool_calls" }] })
  );
  const { body } = await chat(world, { tools: [{ type: "function", function: { name: "f" } }] });
  assert.equal(body.choices[0].message.content, null, "a call of a tool is left alone");
  const json = { response_format: { type: "json_object" } };
  assert.equal((await chat(world, json)).body.choices[0].message.content, "Hello there");
});

Deno.test("messages: a streamed response warns when it brings the balance below, and not earlier", async () => {
  using world = await createWorld({ project: { lowBalance: "1" } });
  await world.deposit("ada", "1.00003");
  for (const isLow of [false, true]) {
    world.upstream.once(helloStream);
    const events = await readEvents(await chatStream(world));
    const choices = events.flatMap((event) => event.choices?.[0] ?? []);
    const { balance } = await world.balance("ada");
    assert.equal(fromDecimal(balance) < fromDecimal("1"), isLow);
    assert.equal(choices.some(({ delta }) => /running low/.test(delta.content)), isLow);
    assert.equal(choices.slice(1).filter(({ delta }) => delta.content === "").length, 0);
    assert.deepEqual(choices.map((choice) => choice.finish_reason).filter(Boolean), ["stop"]);
  }
});

Deno.test("messages: a warning and a cut state the balance after the response", async () => {
  const words = { low_balance: "Left: {{balance}}. {{url}}", cut: "Cut at {{balance}}. {{url}}" };
  const pricing = { models: { "test-model": { input: "1000", output: "2000" } } };
  const project = { lowBalance: "50", messages: { en: words }, pricing };
  using world = await createWorld({ project });
  await world.deposit("ada", "10");
  const left = async (user: string) => {
    const { balance } = await world.balance(user);
    return formatForPeople(parseAmount(balance) ?? zero, "usd");
  };
  const { body } = await chat(world);
  assert.notEqual(await left("ada"), "$10.00");
  assert.ok(body.choices[0].message.content.includes(`Left: ${await left("ada")}. http`));
  world.upstream.once(helloStream);
  const text = await (await chatStream(world)).text();
  assert.ok(text.includes(`Left: ${await left("ada")}. http`), text);
  await world.deposit("bob", "0.15");
  world.upstream.once(() => sse([chunk({ content: "word ".repeat(500) }), chunk({}, "stop")]));
  const cut = await (await chatStream(world, { user: "bob" })).text();
  assert.ok(cut.includes(`Cut at ${await left("bob")}. http`), cut.slice(-600));
  assert.equal(await left("bob"), "$0.00");
});

Deno.test("messages: a balance with more digits than one deposit has is stated exactly", async () => {
  const words = { spend_limit: "Left: {{balance}}. {{url}}" };
  const limits = { user: { spendPerDay: "0.000001" } };
  using world = await createWorld({
    project: { currency: "jpy", limits, messages: { en: words } },
  });
  for (let n = 0; n < 4; n++) await world.deposit("ada", "900000000000");
  const { body } = await chat(world);
  assert.match(body.choices[0].message.content, /Left: ¥3,600,000,000,000\./);
});

for (
  const [name, pieces, said, reason] of [
    ["whose last text comes with its end", [["Hel", null], ["lo", "stop"]], "Hello", "stop"],
    ["that comes in one piece", [["Hello", "stop"]], "Hello", "stop"],
    ["whose every piece says that it ends", [["Hel", "stop"], ["lo", "stop"]], "Hello", "stop"],
    ["whose pieces have an empty reason", [["Hel", ""], ["lo", ""]], "Hello", "stop"],
    ["that ends in a piece of its own", [["Hello", null], [null, "length"]], "Hello", "length"],
  ] satisfies [string, [string | null, string | null][], string, string][]
) {
  Deno.test(`messages: a warning appears once, after all of the text, in a stream ${name}`, async () => {
    using world = await createWorld({ project: { lowBalance: "5" } });
    await world.deposit("ada", "1");
    const deltas = pieces.map(([content, end]) => chunk(content === null ? {} : { content }, end));
    world.upstream.once(() => sse(deltas));
    const events = await readEvents(await chatStream(world));
    const choices = events.flatMap((event) => event.choices?.[0] ?? []);
    const text = choices.map(({ delta }) => delta.content ?? "").join("");
    assert.match(text, new RegExp(`^${said}\n\nYour credit is running low .*https://[^ ]+$`));
    const reasons = choices.map(({ finish_reason }) => finish_reason);
    assert.deepEqual(reasons.filter(Boolean), [reason]);
    assert.equal(reasons.at(-1), reason);
  });
}

Deno.test("trial: a user's first operation grants the credits, once, and emits the event", async () => {
  using world = await createWorld({ project: { trialCredits: "0.5" } });
  const answers = await Promise.all(Array.from({ length: 5 }, () => chat(world)));
  assert.deepEqual(answers.map(({ body }) => body.paywall), Array(5).fill(undefined));
  const kinds = (await world.activities("ada")).map(({ kind }) => kind);
  assert.deepEqual(kinds, ["usage", "usage", "usage", "usage", "usage", "trial"]);
  assert.equal((await world.balance("ada")).balance, "0.4999");
  assert.equal((await usageOf(world)).length, 5);
});

Deno.test("trial: it pays for a first charge, and is granted after a first refusal or deposit", async () => {
  using world = await createWorld({ project: { trialCredits: "0.5" } });
  const charge = (user: string, amount: string) =>
    world.json("/v1/user/charge", { body: { user, amount } });
  assert.equal((await charge("ada", "0.2")).body.balance, "0.3");
  assert.equal((await charge("bob", "2")).body.success, false);
  assert.equal((await world.balance("bob")).balance, "0.5");
  await world.deposit("cyd", "1");
  assert.equal((await world.balance("cyd")).balance, "1.5");
  for (const user of ["ada", "bob", "cyd"]) {
    const trials = (await world.activities(user)).filter(({ kind }) => kind === "trial");
    assert.equal(trials.length, 1, user);
  }
});

Deno.test("trial: two processes at once grant it once", async () => {
  using world = await createWorld({ project: { trialCredits: "0.5" } });
  using other = await createWorld({ shareWith: world });
  await Promise.all([world, other, world, other].map((each) => each.deposit("ada", "1")));
  assert.equal((await world.balance("ada")).balance, "4.5");
});

const contents: [string, unknown][] = [
  ["nothing", null],
  ["parts", [{ type: "text", text: "x" }]],
];

for (const [name, content] of contents) {
  Deno.test(`chat: a clamped response of ${name} has the link at its end, too`, async () => {
    const models = { "test-model": { input: "1", output: "1000", maxOutputTokens: 1000 } };
    using world = await createWorld({ project: { pricing: { models } } });
    await world.deposit("ada", "0.05");
    const message = { role: "assistant", content };
    const choices = [{ index: 0, message, finish_reason: "length" }];
    world.upstream.once(() => completion({ choices, usage: usage(5, 40) }));
    const { body } = await chat(world);
    const sent = body.choices[0].message.content;
    assert.match(sent, /https?:\/\//);
    assert.equal((await usageOf(world)).length, 1);
  });
}

Deno.test("chat: a response cut by a spending limit sends no one to top up", async () => {
  const models = { "test-model": { input: "1", output: "1000", maxOutputTokens: 1000 } };
  const limits = { user: { spendPerDay: "0.05" } };
  using world = await createWorld({ project: { pricing: { models }, limits } });
  await world.deposit("ada", "100");
  const message = { role: "assistant", content: "Hello" };
  const choices = [{ index: 0, message, finish_reason: "length" }];
  world.upstream.once(() => completion({ choices, usage: usage(5, 40) }));
  const { body } = await chat(world);
  const [{ max_tokens: cap }] = world.upstream.calls.map(({ body }) => body);
  assert.ok(cap < 50, "the limit pays for less than was asked");
  assert.equal(body.choices[0].message.content, "Hello");
});
