import assert from "node:assert/strict";
import {
  deltasOf,
  eventStream,
  functionCall,
  message,
  openAiClient,
  readResponseEvents,
  respond,
  respondStream,
  tokens,
  upstreamEvents,
  upstreamResponse,
} from "../../support/responses.ts";
import { usageOf } from "../../support/chat.ts";
import { loadTokenizer } from "../../../src/pricing/tokenizer.ts";
import { type Body, createWorld, type World } from "../../support/world.ts";

// Loaded before the clock is moved, since loading takes real time.
await loadTokenizer();

const words = { cut: "Cut. {{url}}", low_balance: "Low. {{url}}" };
const models = {
  "test-model": { input: "1", output: "2", maxOutputTokens: 1000, reasoning: false },
};

/** A user whose balance cuts each response. */
async function poorWorld(amount = "0.0003"): Promise<World> {
  const world = await createWorld({ project: { pricing: { models }, messages: { en: words } } });
  await world.deposit("ada", amount);
  return world;
}

/** A user whose balance runs low, but pays. */
async function lowWorld(): Promise<World> {
  const project = { pricing: { models }, messages: { en: words }, lowBalance: "5" };
  const world = await createWorld({ project });
  await world.deposit("ada", "1");
  return world;
}

const cut = {
  status: "incomplete",
  incomplete_details: { reason: "max_output_tokens" },
  output: [message("Once upon a", { status: "incomplete" })],
};

function assertClosed(events: Body[], text: RegExp, type = "response.completed"): void {
  const numbers = events.map(({ sequence_number: number }) => number);
  assert.deepEqual(numbers, [...events.keys()]);
  const said = deltasOf(events);
  assert.match(said, text);
  const of = (name: string) => events.findLast((event) => event.type === name);
  assert.equal(of("response.output_text.done")?.text, said);
  assert.equal(of("response.content_part.done")?.part.text, said);
  assert.equal(of("response.output_item.done")?.item.content[0].text, said);
  const end = events.at(-1) ?? {};
  assert.equal(end.type, type);
  assert.equal(end.response.output.at(-1).content.at(-1).text, said);
  assert.ok(end.response.usage.cost > 0);
}

Deno.test("responses notice: a text that the balance cut is complete, with the link at its end", async () => {
  using world = await poorWorld();
  world.upstream.once(() => Response.json(upstreamResponse({ ...cut, usage: tokens(8, 20) })));
  const { body } = await respond(world);
  assert.match(
    body.output[0].content[0].text,
    /^Once upon aCut\. https|^Once upon a\s+Cut\. https/,
  );
  assert.deepEqual([body.status, body.incomplete_details], ["completed", null]);
  assert.equal(body.output[0].status, "completed");
});

Deno.test("responses notice: streamed, the link is one more delta, and every end has it", async () => {
  using world = await poorWorld();
  const events = upstreamEvents(upstreamResponse({ ...cut, usage: tokens(8, 20) }));
  world.upstream.once(() => eventStream(events));
  const got = await readResponseEvents(await respondStream(world));
  assertClosed(got, /^Once upon a\s+Cut\. https:/);
  assert.equal(got.length, events.length + 1);
  assert.equal(got.at(-1)?.response.status, "completed");
  assert.equal(got.at(-1)?.response.incomplete_details, null);
  assert.equal(
    got.find(({ type }) => type === "response.output_item.done")?.item.status,
    "completed",
  );
});

Deno.test("responses notice: a stream that uses up its hold ends as a whole response", async () => {
  using world = await poorWorld();
  const long = upstreamEvents(upstreamResponse({ output: [message("word ".repeat(3_000))] }));
  world.upstream.once(() => eventStream(long));
  const got = await readResponseEvents(await respondStream(world));
  assertClosed(got, /^word .*Cut\. https:/s);
  assert.ok(got.length < long.length / 2);
  assert.ok(Number((await world.balance("ada")).available) < 0.00001);
});

Deno.test("responses notice: where the caller's own bound ends a stream, it stays incomplete", async () => {
  using world = await createWorld({ project: { pricing: { models } } });
  await world.deposit("ada", "1");
  world.upstream.reply(() => eventStream(upstreamEvents(upstreamResponse(cut))));
  const got = await readResponseEvents(await respondStream(world, { max_output_tokens: 20 }));
  assertClosed(got, /^Once upon a$/, "response.incomplete");
});

Deno.test("responses notice: JSON that was cut stays incomplete, and a call of a tool is left alone", async () => {
  using world = await poorWorld("0.003");
  const tools = [{ type: "function", name: "weather", parameters: {} }];
  const pricier = {
    pricing: { models: { "test-model": { ...models["test-model"], output: "50" } } },
  };
  using other = await createWorld({
    project: { ...pricier, messages: { en: words }, lowBalance: "5" },
  });
  await other.deposit("ada", "0.06");
  const called = upstreamResponse({ ...cut, output: [functionCall()], usage: tokens(8, 20) });
  for (const each of [world, other]) {
    each.upstream.reply(() => Response.json(called));
    const { body } = await respond(each, { tools });
    assert.deepEqual(body.output, [functionCall()]);
    assert.equal(body.status, "incomplete");
  }
  other.upstream.reply(() => eventStream(upstreamEvents(called)));
  const events = await readResponseEvents(await respondStream(other, { tools }));
  assert.equal(events.at(-1)?.type, "response.incomplete");
  assert.equal(deltasOf(events), "");
});

Deno.test("responses notice: one cut while it reasoned has the link in a message of ours", async () => {
  for (const isStream of [false, true]) {
    using world = await poorWorld();
    const reasoning = { id: "rs_1", type: "reasoning", summary: [] };
    const response = upstreamResponse({ ...cut, output: [reasoning], usage: tokens(8, 20) });
    world.upstream.once(() =>
      isStream ? eventStream(upstreamEvents(response)) : Response.json(response)
    );
    const events = isStream ? await readResponseEvents(await respondStream(world)) : [];
    const body = isStream ? events.at(-1)?.response : (await respond(world)).body;
    if (isStream) assertClosed(events, /^Cut\. https:/);
    const [first, own] = body.output;
    assert.deepEqual(first, reasoning);
    assert.match(own.id, /^msg_paywall_/);
    assert.match(own.content[0].text, /^Cut\. https:/);
    assert.equal(body.status, "completed");
  }
});

Deno.test("responses notice: a low balance is told once, at the end of the last text", async () => {
  using world = await lowWorld();
  world.upstream.once(() => Response.json(upstreamResponse()));
  const { body } = await respond(world);
  assert.match(body.output[0].content[0].text, /^Hello there\s+Low\. https:/);
  const output = [message("First.", { id: "msg_1" }), message("Second.", { id: "msg_2" })];
  world.upstream.once(() => eventStream(upstreamEvents(upstreamResponse({ output }))));
  const events = await readResponseEvents(await respondStream(world));
  assert.match(deltasOf(events), /^First\.Second\.\s+Low\. https:\S+$/);
  const [first, second] = events.at(-1)?.response.output ?? [];
  assert.equal(first.content[0].text, "First.");
  assert.match(second.content[0].text, /^Second\.\s+Low/);
  const dones = events.filter(({ type }) => type === "response.output_item.done");
  assert.deepEqual(dones.map(({ item }) => item), [first, second]);
});

for (
  const [what, keep] of [
    ["any end", (type: string) => !/\.done$/.test(type)],
    ["output_item.done", (type: string) => type !== "response.output_item.done"],
    ["output_text.done", (type: string) => type !== "response.output_text.done"],
    ["response.completed", (type: string) => type !== "response.completed"],
    ["deltas", (type: string) => !/delta/.test(type)],
    ["all but the last event", (type: string) => /completed/.test(type)],
  ] as const
) {
  Deno.test(`responses notice: without ${what} of the upstream the notice is in every text`, async () => {
    using world = await lowWorld();
    world.upstream.once(() => eventStream(upstreamEvents().filter(({ type }) => keep(type))));
    const events = await readResponseEvents(await respondStream(world));
    const end = events.at(-1)?.response;
    assert.match(end.output[0].content[0].text, /^Hello there\s+Low\. https:/);
    const dones = events.filter(({ type }) => type === "response.output_item.done");
    assert.deepEqual(dones.map(({ item }) => item), end.output);
  });
}

Deno.test("responses notice: OpenAI's client has the whole text with it", async () => {
  using world = await poorWorld();
  const events = upstreamEvents(upstreamResponse({ ...cut, usage: tokens(8, 20) }));
  world.upstream.once(() => eventStream(events));
  const stream = openAiClient(world).responses.stream({ model: "test-model", input: "Hi" });
  const final = await stream.finalResponse();
  assert.match(final.output_text, /^Once upon a\s+Cut\. https:/);
  assert.equal(final.status, "completed");
  assert.equal((await usageOf(world)).length, 1);
});
