import assert from "node:assert/strict";
import { openReader, usageOf } from "../../support/chat.ts";
import { fedStream, sseBytes } from "../../support/upstream.ts";
import {
  deltasOf,
  eventStream,
  framesOf,
  functionCall,
  message,
  openAiClient,
  readResponseEvents,
  respondStream,
  tokens,
  upstreamEvents,
  upstreamResponse,
} from "../../support/responses.ts";
import { loadTokenizer } from "../../../src/pricing/tokenizer.ts";
import { type Body, createWorld, type World } from "../../support/world.ts";

// Loaded before the clock is moved, since loading takes real time.
await loadTokenizer();

const cost = { cost: 0.00002, cost_exact: "0.00002" };

async function paidWorld(options: Body = {}): Promise<World> {
  const world = await createWorld(options);
  await world.deposit("ada", "1");
  return world;
}

async function streamed(world: World, events: Body[], fields: Body = {}): Promise<Body[]> {
  world.upstream.once(() => eventStream(events));
  return await readResponseEvents(await respondStream(world, fields));
}

function assertNumbered(events: Body[]): void {
  const numbers = events.map(({ sequence_number: number }) => number);
  assert.deepEqual(numbers, numbers.map((_, at) => at));
}

Deno.test("responses stream: events pass as their own text, and the last one has the charge", async () => {
  using world = await paidWorld();
  const events = upstreamEvents();
  const [last] = events.slice(-1);
  world.upstream.once(() => eventStream(events));
  const text = await (await respondStream(world)).text();
  assert.ok(text.startsWith(framesOf(events.slice(0, -1))), text);
  const end = JSON.parse(text.split("data: ").at(-1) ?? "");
  const usage = { ...tokens(10, 5), ...cost };
  assert.deepEqual(end, { ...last, response: { ...upstreamResponse(), usage } });
  assert.ok(text.includes("event: response.completed\n") && !text.includes("[DONE]"));
  assert.equal((await usageOf(world))[0]?.amount, "0.00002");
});

Deno.test("responses stream: the last event is sent after the charge only", async () => {
  using world = await paidWorld();
  const fed = fedStream();
  world.upstream.once(() => fed.response);
  const reader = openReader(await respondStream(world));
  const events = upstreamEvents();
  for (const event of events) fed.send(event);
  fed.end();
  let text = "";
  for (let read = await reader.read(); read !== null; read = await reader.read()) {
    if (!text.includes("response.completed") && read.includes("response.completed")) {
      assert.equal((await usageOf(world)).length, 1);
    }
    text += read;
  }
  assert.ok(text.includes("response.completed"));
});

for (const usage of [null, undefined, {}]) {
  Deno.test(`responses stream: with usage ${JSON.stringify(usage)} each text is counted once`, async () => {
    using world = await paidWorld();
    const text = "one two three four five six seven eight nine ten";
    const output = [message(text), functionCall({ arguments: '{"a":1}' })];
    const events = await streamed(world, upstreamEvents(upstreamResponse({ output, usage })));
    const { input_tokens: input, output_tokens: counted } = events.at(-1)?.response.usage ?? {};
    assert.ok(input > 0 && counted >= 14 && counted <= 18, `${counted}`);
    const silent = upstreamEvents(upstreamResponse({ output, usage }))
      .filter(({ type }) => !type.endsWith(".delta"));
    const again = await streamed(world, silent);
    assert.equal(again.at(-1)?.response.usage.output_tokens, counted, "without deltas");
    const entries = await usageOf(world);
    assert.deepEqual(entries.map(({ usage }) => usage.source), ["estimated", "estimated"]);
  });
}

Deno.test("responses stream: reasoning, refusals, code and arguments are all counted", async () => {
  using world = await paidWorld();
  const text = "one two three four five six seven eight nine ten";
  const place = { item_id: "x_1", output_index: 0, content_index: 0, summary_index: 0 };
  for (
    const name of [
      "output_text",
      "refusal",
      "reasoning_text",
      "reasoning_summary_text",
      "function_call_arguments",
      "custom_tool_call_input",
      "code_interpreter_call_code",
      "mcp_call_arguments",
      "audio.transcript",
      "anything_new",
    ]
  ) {
    const [start, , ...rest] = upstreamEvents(upstreamResponse({ output: [], usage: null }));
    const deltas = text.match(/.{1,7}/gs)?.map((delta) => ({
      type: `response.${name}.delta`,
      ...place,
      delta,
    })) ?? [];
    const done = { type: `response.${name}.done`, ...place, text };
    await streamed(world, [start, ...deltas, done, ...rest].flatMap((one) => one ?? []));
    const [entry] = await usageOf(world);
    assert.equal(entry?.usage.outputTokens, 10, name);
  }
});

Deno.test("responses stream: an upstream that ignores 'stream' is answered as events", async () => {
  using world = await paidWorld();
  const reasoning = {
    id: "rs_1",
    type: "reasoning",
    summary: [{ type: "summary_text", text: "Hm." }],
  };
  const refusal = message("", { id: "msg_2", content: [{ type: "refusal", refusal: "No." }] });
  const output = [reasoning, message("Hello there"), refusal, functionCall()];
  world.upstream.once(() => Response.json(upstreamResponse({ output })));
  const events = await readResponseEvents(await respondStream(world));
  assertNumbered(events);
  assert.equal(deltasOf(events), "Hello there");
  const types = events.map(({ type }) => type);
  assert.deepEqual(types.slice(0, 3), [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
  ]);
  assert.ok(types.includes("response.reasoning_summary_text.delta"));
  assert.ok(types.includes("response.refusal.done"));
  assert.ok(types.includes("response.function_call_arguments.done"));
  const usage = { ...tokens(10, 5), ...cost };
  assert.deepEqual(events.at(-1)?.response, upstreamResponse({ output, usage }));
});

const lacking: [string, (event: Body) => boolean][] = [
  ["response.created", ({ type }) => type !== "response.created"],
  ["any beginning of the response", ({ type }) => !/created|in_progress/.test(type)],
  ["output_item.added", ({ type }) => type !== "response.output_item.added"],
  ["content_part.added", ({ type }) => type !== "response.content_part.added"],
  ["every beginning", ({ type }) => !/added|created|in_progress/.test(type)],
  ["output_item.done", ({ type }) => type !== "response.output_item.done"],
  ["every end of an item", ({ type }) => !/\.done$/.test(type)],
  ["response.completed", ({ type }) => type !== "response.completed"],
  ["every delta", ({ type }) => !/delta/.test(type)],
  ["all but its beginning and end", ({ type }) => /created|completed/.test(type)],
];
for (const [what, keep] of lacking) {
  Deno.test(`responses stream: without ${what} clients get every event all the same`, async () => {
    using world = await paidWorld();
    const events = await streamed(world, upstreamEvents().filter(keep));
    const types = new Set(events.map(({ type }) => type));
    for (
      const type of [
        "created",
        "output_item.added",
        "content_part.added",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
      ]
    ) {
      const isThere = types.has(`response.${type}`) ||
        (what.includes("delta") && /text/.test(type));
      assert.ok(isThere, `${type} in ${[...types]}`);
    }
    const end = events.at(-1) ?? {};
    assert.equal(end.type, "response.completed");
    assert.equal(end.response.status, "completed");
    assert.equal(end.response.output[0].content[0].text, "Hello there");
    assert.equal(
      events.find(({ type }) => type === "response.output_item.done")
        ?.item.content[0].text,
      "Hello there",
    );
    assert.ok(end.response.usage.output_tokens > 0);
    const numbers = events.map(({ sequence_number: number }) => number);
    assert.ok(numbers.every((number, at) => at === 0 || number > numbers[at - 1]), `${numbers}`);
  });
}

Deno.test("responses stream: members that are missing are added, and events number on", async () => {
  using world = await paidWorld();
  const bare = upstreamEvents().map(({ sequence_number: _, item_id: _id, ...event }) => {
    const { item, part, response } = event;
    if (item) event.item = { ...item, id: undefined, role: undefined };
    if (part) event.part = { type: "output_text", text: part.text };
    if (response) event.response = { output: response.output, usage: response.usage };
    return event;
  });
  const events = await streamed(world, bare);
  assertNumbered(events);
  const added = events.find(({ type }) => type === "response.output_item.added");
  assert.match(added?.item.id, /^msg_/);
  assert.ok(events.every(({ item_id: id }) => id === undefined || id === added?.item.id));
  const part = events.find(({ type }) => type === "response.content_part.added")?.part;
  assert.deepEqual(part.annotations, []);
  const { response } = events.at(-1) ?? {};
  assert.equal(response.id, events[0]?.response.id);
  assert.equal(typeof response.created_at, "number");
  assert.equal(response.model, "test-model");
});

Deno.test("responses stream: items with the same index, and ids that change, are told apart", async () => {
  using world = await paidWorld();
  const output = [message("First.", { id: "msg_1" }), message("Second.", { id: "msg_2" })];
  const sent = upstreamEvents(upstreamResponse({ output }));
  const sameIndex = sent.map((event) =>
    "output_index" in event ? { ...event, output_index: 0 } : event
  );
  const otherIds = sent.map((event, at) =>
    "item_id" in event ? { ...event, item_id: `x${at}` } : event
  );
  for (const events of [sameIndex, otherIds]) {
    const got = await streamed(world, events);
    assertNumbered(got);
    const places = got.filter(({ type }) => /delta/.test(type))
      .map(({ item_id: id, output_index: index, delta }) => [id, index, delta]);
    assert.deepEqual(places, [["msg_1", 0, "First"], ["msg_1", 0, "."], ["msg_2", 1, "Secon"], [
      "msg_2",
      1,
      "d.",
    ]]);
    assert.deepEqual(got.at(-1)?.response.output, output);
  }
});

Deno.test("responses stream: an error is an event with the next number, and what arrived is charged", async () => {
  using world = await paidWorld();
  const begun = upstreamEvents().slice(0, 6);
  const failures: [Body, string][] = [
    [{ type: "error", code: "server_error", message: "Out of memory.", param: null }, "error"],
    [
      {
        type: "response.failed",
        response: upstreamResponse({
          status: "failed",
          output: [],
          usage: null,
          error: { code: "server_error", message: "Out of memory." },
        }),
      },
      "response.failed",
    ],
  ];
  failures.push([{ ...failures[1]?.[0], type: "response.completed" }, "response.failed"]);
  for (const [failure, last] of failures) {
    const events = await streamed(world, [...begun, { ...failure, sequence_number: 6 }]);
    assertNumbered(events);
    const error = events.find(({ type }) => type === "error");
    assert.equal(error?.message, "Out of memory.");
    assert.equal(events.at(-1)?.type, last);
    if (last === "response.failed") {
      const { response } = events.at(-1) ?? {};
      assert.equal(response.error.message, "Out of memory.");
      assert.ok(response.usage.cost > 0);
    }
  }
  const named = framesOf(begun) + 'event: error\ndata: {"type":"oom","message":"Out."}\n\n';
  world.upstream.once(() => sseBytes([new TextEncoder().encode(named)]));
  assert.equal((await readResponseEvents(await respondStream(world))).at(-1)?.message, "Out.");
  assert.equal((await usageOf(world)).length, 4);
});

Deno.test("responses stream: a failure before anything else is a status, and free", async () => {
  using world = await paidWorld();
  const response = upstreamResponse({
    status: "failed",
    output: [],
    error: { code: "rate_limit_exceeded", message: "Slow down." },
    usage: null,
  });
  for (
    const event of [
      { type: "response.failed", response },
      { type: "error", code: "rate_limit_exceeded", message: "Slow down." },
    ]
  ) {
    world.upstream.once(() => eventStream([event]));
    const refused = await respondStream(world);
    assert.equal(refused.status, 429);
    assert.equal((await refused.json()).error.message, "Slow down.");
  }
  assert.equal((await usageOf(world)).length, 0);
});

Deno.test("responses stream: an upstream that breaks off is reported, or ended where all was said", async () => {
  using world = await paidWorld();
  const events = upstreamEvents();
  const cutAfter = async (count: number) => {
    const fed = fedStream();
    world.upstream.once(() => fed.response);
    const reading = readResponseEvents(await respondStream(world));
    for (const event of events.slice(0, count)) fed.send(event);
    await world.until(fed.isRead);
    fed.fail();
    return await reading;
  };
  const broken = await cutAfter(6);
  assert.equal(broken.at(-1)?.type, "error");
  assert.equal(broken.at(-1)?.code, "upstream_error");
  const whole = await cutAfter(events.length - 1);
  assert.equal(whole.at(-1)?.type, "response.completed");
  assert.equal(whole.at(-1)?.response.output[0].content[0].text, "Hello there");
  assert.ok(!whole.some(({ type }) => type === "error"));
  assert.equal((await usageOf(world)).length, 2);
});

Deno.test("responses stream: an event too large to be parsed passes on, and its usage is charged", async () => {
  using world = await paidWorld({ env: { UPSTREAM_EVENT_BYTES_MAX: "2000" } });
  const image = { id: "ig_1", type: "image_generation_call", result: "A".repeat(9_000) };
  const response = upstreamResponse({ output: [message("Hello there"), image] });
  const events = upstreamEvents(response);
  const text = framesOf(events);
  world.upstream.once(() => sseBytes([new TextEncoder().encode(text)]));
  const got = await (await respondStream(world)).text();
  const datas = (frames: string) => [...frames.matchAll(/^data: (.*)$/gm)].map(([, data]) => data);
  assert.deepEqual(datas(got), datas(text));
  assert.equal((await usageOf(world))[0]?.amount, "0.00002");
});

Deno.test("responses stream: output in its first events is left out, and an error of a call passes", async () => {
  using world = await paidWorld();
  const failed = { type: "response.mcp_call.failed", output_index: 0, error: { message: "No." } };
  const events = upstreamEvents().map((event, at) =>
    at < 2 ? { ...event, response: { ...event.response, output: [message("Free?")] } } : event
  );
  const got = await streamed(world, [...events.slice(0, 4), failed, ...events.slice(4)]);
  assert.ok(!JSON.stringify(got).includes("Free?"));
  assert.ok(got.some(({ type }) => type === failed.type));
  assert.equal(got.at(-1)?.type, "response.completed");
});

Deno.test("responses stream: a client that leaves is charged for what it got", async () => {
  using world = await paidWorld();
  const fed = fedStream();
  world.upstream.once(() => fed.response);
  const reader = openReader(await respondStream(world));
  for (const event of upstreamEvents().slice(0, 6)) fed.send(event);
  let read = "";
  while (!read.includes("delta")) read += await reader.read() ?? assert.fail();
  await reader.leave();
  await world.until(async () => (await usageOf(world)).length === 1);
  const [entry] = await usageOf(world);
  assert.equal(entry?.usage.source, "estimated");
  assert.ok(entry?.usage.outputTokens >= 1);
});

Deno.test("responses stream: noise between events, and what is no JSON, harms nothing", async () => {
  using world = await paidWorld();
  const frames = upstreamEvents().map((event) => framesOf([event]))
    .join(': comment\n\ndata: {broken\n\nevent: ping\ndata: {"type":"ping"}\n\ndata: 7\n\n');
  world.upstream.once(() => sseBytes([new TextEncoder().encode(frames)]));
  const events = await readResponseEvents(await respondStream(world));
  assert.equal(deltasOf(events), "Hello there");
  assert.equal(events.at(-1)?.response.usage.cost, 0.00002);
});

Deno.test("responses stream: OpenAI's client reads a stream, and its calls of functions", async () => {
  using world = await paidWorld();
  const output = [message("Hello there"), functionCall()];
  world.upstream.reply(() => eventStream(upstreamEvents(upstreamResponse({ output }))));
  const client = openAiClient(world);
  const stream = client.responses.stream({ model: "test-model", input: "Hi" });
  let said = "";
  stream.on("response.output_text.delta", ({ delta }) => void (said += delta));
  const final = await stream.finalResponse();
  assert.equal(said, "Hello there");
  assert.equal(final.output_text, "Hello there");
  assert.equal(final.output[1]?.type, "function_call");
});
