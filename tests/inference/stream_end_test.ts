import assert from "node:assert/strict";
import { chatStream, openReader, until, usageOf } from "../support/chat.ts";
import { chunk, fedStream, readEvents, sse, usageChunk } from "../support/upstream.ts";
import { loadTokenizer } from "../../src/pricing/tokenizer.ts";
import { settle } from "../support/clock.ts";
import { createWorld, type World } from "../support/world.ts";

// Loaded before the clock is moved, since loading takes real time.
await loadTokenizer();

/** 8 tokens of prompt, 2 of "Hello there". */
const producedCost = "0.000012";

async function assertCharged(world: World, amounts: string[]): Promise<void> {
  assert.deepEqual((await usageOf(world)).map(({ amount }) => amount), amounts);
  assert.equal((await world.balance("ada")).held, "0");
}

Deno.test("chat stream end: a dying upstream is reported in a frame, and what arrived is charged", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const fed = fedStream();
  world.upstream.once(() => fed.response);
  const reader = openReader(await chatStream(world));
  fed.send(chunk({ content: "Hello there" }));
  await reader.read();
  fed.fail();
  const last = await reader.read() ?? "";
  assert.deepEqual(JSON.parse(last.slice("data: ".length)), { // case 49
    error: {
      message: "The upstream closed the connection before its response ended.",
      type: "server_error",
      param: null,
      code: "upstream_error",
    },
  });
  assert.equal(await reader.read(), null);
  await assertCharged(world, [producedCost]);
  assert.equal((await usageOf(world))[0]?.usage.source, "estimated");
});

Deno.test("chat stream end: an upstream that dies before any output is free", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const fed = fedStream();
  world.upstream.once(() => fed.response);
  const response = await chatStream(world);
  fed.send(chunk({ role: "assistant", content: "" }));
  fed.fail();
  const events = await readEvents(response);
  assert.equal(events.at(-1).error.code, "upstream_error"); // case 49
  await assertCharged(world, []);
  assert.equal((await world.balance("ada")).balance, "1");
});

const errorFrames: { name: string; frame: string; code: string; message: RegExp }[] = [
  {
    name: "an error as data",
    frame: 'data: {"error":{"message":"ran out of memory","type":"server_error","code":"oom"}}\n\n',
    code: "oom",
    message: /^ran out of memory$/,
  },
  {
    name: "a numeric code", // case 38
    frame: 'data: {"error":{"message":"ran out of memory","code":500}}\n\n',
    code: "500",
    message: /^ran out of memory$/,
  },
  {
    name: "an error event that is no JSON",
    frame: "event: error\ndata: Error: at line 3\n\n",
    code: "upstream_error",
    message: /closed the connection/,
  },
];

for (const { name, frame, code, message } of errorFrames) {
  Deno.test(`chat stream end: ${name} becomes one frame of OpenAI's, and what arrived is charged`, async () => {
    using world = await createWorld();
    await world.deposit("ada", "1");
    const hello = `data: ${JSON.stringify(chunk({ content: "Hello there" }))}\n\n`;
    const headers = { "content-type": "text/event-stream" };
    world.upstream.once(() => new Response(`${hello}${frame}data: [DONE]\n\n`, { headers }));
    const events = await readEvents(await chatStream(world));
    assert.equal(events.length, 2); // case 50
    assert.deepEqual(Object.keys(events[1].error), ["message", "type", "param", "code"]);
    assert.equal(events[1].error.code, code);
    assert.match(events[1].error.message, message);
    await assertCharged(world, [producedCost]);
  });
}

const nothingSaid: [name: string, frames: string, code: string, message: RegExp][] = [
  ["says only that it is done", "", "upstream_error", /invalid response/],
  [
    "says its error in FastChat's shape",
    'data: {"text":"**NETWORK ERROR**","error_code":50002}\n\n',
    "50002",
    /NETWORK ERROR/,
  ],
  [
    "says its error as an object of that name",
    'data: {"object":"error","message":"out of memory","code":40303}\n\n',
    "40303",
    /out of memory/,
  ],
  [
    "says its error in Google's list",
    'data: [{"error":{"code":500,"message":"an internal error"}}]\n\n',
    "500",
    /an internal error/,
  ],
];

for (const [name, frames, code, message] of nothingSaid) {
  Deno.test(`chat stream end: one that ${name} has failed, and costs nothing`, async () => {
    using world = await createWorld();
    await world.deposit("ada", "1");
    const headers = { "content-type": "text/event-stream" };
    world.upstream.once(() => new Response(`${frames}data: [DONE]\n\n`, { headers }));
    const response = await chatStream(world);
    const { error } = response.status === 200
      ? (await readEvents(response))[0]
      : await response.json();
    assert.equal(error.code, code);
    assert.match(error.message, message);
    await assertCharged(world, []);
  });
}

const isOwnerss = [
  { message: "Quota of acct-77 exceeded", type: "insufficient_quota", code: "insufficient_quota" },
  { message: "acct-77 owes money", type: "billing_error", code: "402" },
  { message: "Incorrect API key: upstream-secret-key, acct-77", code: "invalid_api_key" },
];

for (const error of isOwnerss) {
  Deno.test(`chat stream end: an error about the owner's account (${error.code}) goes to the owner's log`, async () => {
    using world = await createWorld();
    await world.deposit("ada", "1");
    world.upstream.once(() => sse([{ error }]));
    const response = await chatStream(world);
    const told = await response.text();
    assert.ok(!told.includes("acct-77"), told); // case 50, decision 2
    assert.ok(!told.includes("upstream-secret-key"), told);
    assert.match(told, /"code":"upstream_unavailable"/);
    assert.ok(JSON.stringify(world.logged).includes("acct-77"), "the owner's log has it");
    await assertCharged(world, []);
  });
}

Deno.test("chat stream end: a silent upstream is kept alive, then ended, then charged", async () => {
  using world = await createWorld({ env: { UPSTREAM_IDLE_MS: "40000" } });
  await world.deposit("ada", "1");
  const fed = fedStream();
  world.upstream.once(() => fed.response);
  const reader = openReader(await chatStream(world));
  fed.send(chunk({ content: "Hello" }));
  await reader.read();
  // Each silence is measured on its own.
  for (let n = 0; n < 2; n++) {
    const next = reader.read();
    await world.clock.advance(15_000);
    await next;
  }
  fed.send(chunk({ content: " there" }));
  assert.match(await reader.read() ?? "", / there/);
  const read = [];
  for (const ms of [15_000, 15_000, 10_000]) {
    const next = reader.read();
    await world.clock.advance(ms - 1);
    assert.equal((await usageOf(world)).length, 0);
    await world.clock.advance(1);
    read.push(await next);
  }
  assert.deepEqual(read.slice(0, 2), [": keep-alive\n\n", ": keep-alive\n\n"]); // case 54
  assert.match(read[2] ?? "", /^data: \{"error":\{.*"code":"upstream_timeout"\}\}\n\n$/);
  assert.equal(await reader.read(), null);
  await fed.cancelled;
  await assertCharged(world, [producedCost]);
});

Deno.test("chat stream end: an upstream that only sends comments does not suppress keep-alives", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const { readable, writable } = new TransformStream<Uint8Array>();
  const writer = writable.getWriter();
  const say = (text: string) => writer.write(new TextEncoder().encode(text));
  const headers = { "content-type": "text/event-stream" };
  world.upstream.once(() => new Response(readable, { headers }));
  const reader = openReader(await chatStream(world));
  const first = reader.read();
  for (let n = 0; n < 2; n++) {
    await world.clock.advance(8_000);
    await say(": OPENROUTER PROCESSING\n\n");
    await settle();
  }
  assert.equal(await first, ": keep-alive\n\n");
  const next = reader.read();
  await say(`data: ${JSON.stringify(chunk({ content: "Hello" }))}\n\n`);
  assert.match(await next ?? "", /Hello/);
  await reader.leave();
});

Deno.test("chat stream end: a long response keeps its hold as long as it runs", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const fed = fedStream();
  world.upstream.once(() => fed.response);
  const reader = openReader(await chatStream(world));
  const held = (await world.balance("ada")).held;
  assert.notEqual(held, "0");
  for (let minute = 0; minute < 4; minute++) {
    fed.send(chunk({ content: "word " }));
    await reader.read();
    await world.clock.advance(60_000);
    assert.equal((await world.balance("ada")).held, held);
  }
  fed.send(usageChunk());
  fed.send("[DONE]");
  assert.match(await until(world, reader.read()) ?? "", /"finish_reason":"stop"/);
  await assertCharged(world, ["0.00002"]);
});

const endings: { name: string; sent: unknown[]; done: boolean; finish: string[] }[] = [
  {
    name: "no finish_reason gets 'stop'",
    sent: [chunk({ content: "Hello there" })],
    done: true,
    finish: ["stop"],
  },
  {
    name: "no [DONE] gets it",
    sent: [chunk({ content: "Hello there" }), chunk({}, "length")],
    done: false,
    finish: ["length"],
  },
];

for (const { name, sent, done, finish } of endings) {
  Deno.test(`chat stream end: a stream with ${name}`, async () => { // case 55
    using world = await createWorld();
    await world.deposit("ada", "1");
    world.upstream.once(() => sse(sent, { done }));
    const events = await readEvents(await chatStream(world));
    assert.equal(events.pop(), "[DONE]");
    const reasons = events.map((event) => event.choices[0].finish_reason).filter(Boolean);
    assert.deepEqual(reasons, finish);
    assert.equal((await usageOf(world)).length, 1);
  });
}

Deno.test("chat stream end: neither finish_reason nor [DONE] is a broken response", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  world.upstream.once(() => sse([chunk({ content: "Hello there" })], { done: false }));
  const events = await readEvents(await chatStream(world));
  assert.equal(events.at(-1).error.code, "upstream_error"); // case 55
  await assertCharged(world, [producedCost]);
});

Deno.test("chat stream end: data that is not JSON is dropped, since clients would fail on it", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  world.upstream.once(() =>
    sse(["hello?", "", "[1]", chunk({ role: "assistant", content: "Hi" }), chunk({}, "stop")])
  );
  const events = await readEvents(await chatStream(world));
  const said = chunk({ role: "assistant", content: "Hi" });
  assert.deepEqual(events, [said, chunk({}, "stop"), "[DONE]"]);
});

Deno.test("chat stream end: what follows [DONE] is neither read nor charged", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  world.upstream.once(() =>
    sse([
      chunk({ content: "Hello there" }),
      chunk({}, "stop"),
      "[DONE]",
      chunk({ content: "more" }),
      usageChunk(),
    ])
  );
  const events = await readEvents(await chatStream(world));
  assert.equal(events.at(-1), "[DONE]");
  assert.equal(events.length, 3);
  await assertCharged(world, [producedCost]);
});

Deno.test("chat stream end: an upstream that ignores its bound is stopped when the hold is used up", async () => {
  using world = await createWorld();
  await world.deposit("ada", "0.0005");
  const fed = fedStream();
  world.upstream.once(() => fed.response);
  const response = await chatStream(world);
  const { held } = await world.balance("ada");
  for (let i = 0; i < 400; i++) fed.send(chunk({ content: " word" }));
  const events = await readEvents(response);
  await fed.cancelled;
  const finishes = events.map((event) => event.choices?.[0].finish_reason).filter(Boolean);
  assert.deepEqual(finishes, ["length"]);
  const text = events.map((event) => event.choices?.[0].delta.content ?? "").join("");
  assert.match(text, /word\n\nYour credit paid for this part.*https:\/\/farebox\.test\/t\//);
  assert.equal(events.at(-1), "[DONE]");
  const [entry] = await usageOf(world);
  const spared = Math.round((Number(held) - Number(entry?.amount)) * 1e6);
  assert.ok(spared >= 0 && spared < 4, `${entry?.amount} of ${held}`);
  assert.equal(entry?.shortfall, "0");
});

Deno.test("chat stream end: the operator's key is removed from an error frame that repeats it", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  world.upstream.once(() =>
    sse([chunk({ content: "Hi" }), { error: { message: "no upstream-secret-key", code: 500 } }])
  );
  const text = await (await chatStream(world)).text();
  assert.match(text, /no \[redacted\]/);
  assert.doesNotMatch(text + JSON.stringify(world.logged), /upstream-secret-key/);
});

Deno.test("chat stream end: chunks with an empty finish reason do not complete a broken stream", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  world.upstream.once(() =>
    sse([chunk({ content: "Hello" }, ""), chunk({ content: " there" }, "")], { done: false })
  );
  const events = await readEvents(await chatStream(world));
  assert.equal(events.at(-1).error.code, "upstream_error");
  assert.deepEqual(events.slice(0, 2).map(({ choices: [{ finish_reason }] }) => finish_reason), [
    null,
    null,
  ]);
  await assertCharged(world, [producedCost]);
});

Deno.test("chat stream end: text that comes with its end is sent once, before our own notice", async () => {
  using world = await createWorld({ project: { lowBalance: "5" } });
  await world.deposit("ada", "1");
  world.upstream.once(() =>
    sse([chunk({ content: "Hello" }), chunk({ content: " there" }, "stop")])
  );
  const events = await readEvents(await chatStream(world));
  const choices = events.flatMap((event) => event.choices ?? []);
  const said = choices.map(({ delta: { content = "" } }) => content).join("");
  assert.match(said, /^Hello there[^]*running low/);
  assert.equal(said.split(" there").length, 2, said);
  assert.deepEqual(choices.map(({ finish_reason }) => finish_reason), [null, null, null, "stop"]);
});

Deno.test("chat stream end: an empty list of calls is not a call", async () => {
  using world = await createWorld({ project: { lowBalance: "5" } });
  await world.deposit("ada", "1");
  world.upstream.once(() => sse([chunk({ content: "Hi", tool_calls: [] })]));
  const events = await readEvents(await chatStream(world));
  assert.equal(events.at(-2).choices[0].finish_reason, "stop");
  assert.match(events.at(-3).choices[0].delta.content, /running low/);
});

Deno.test("chat stream end: a call that follows a stop is how it ends, and stays alone", async () => {
  using world = await createWorld({ project: { lowBalance: "5" } });
  await world.deposit("ada", "1");
  const call = { index: 0, id: "c", type: "function", function: { name: "f", arguments: "{}" } };
  const told = [chunk({ tool_calls: [call] }), chunk({}, "stop"), chunk({}, "tool_calls")];
  world.upstream.once(() => sse(told));
  const text = await (await chatStream(world)).text();
  assert.deepEqual(text.match(/"finish_reason":"\w+"/g), ['"finish_reason":"tool_calls"']);
  assert.doesNotMatch(text, /running low/);
});

Deno.test("chat stream end: a completed response stays completed, even if an error follows", async () => {
  using world = await createWorld({ project: { lowBalance: "5" } });
  await world.deposit("ada", "1");
  const late = { error: { message: "late", code: "x" } };
  world.upstream.once(() => sse([chunk({ content: "Hi" }), chunk({}, "stop"), late]));
  const text = await (await chatStream(world)).text();
  assert.match(text, /Hi[^]*running low[^]*"finish_reason":"stop"[^]*"code":"x"/);
});

Deno.test("chat stream end: a tool call without an end ends as one", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const call = { index: 0, id: "c", type: "function", function: { name: "f", arguments: "{}" } };
  world.upstream.once(() => sse([chunk({ tool_calls: [call] })]));
  const events = await readEvents(await chatStream(world));
  assert.deepEqual(events.slice(0, -1).map(({ choices: [{ finish_reason }] }) => finish_reason), [
    null,
    "tool_calls",
  ]);
});
