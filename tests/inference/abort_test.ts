import assert from "node:assert/strict";
import { ApiError } from "../../src/base/errors.ts";
import { callStream, chat, chatStream, openReader, until, usageOf } from "../support/chat.ts";
import {
  chunk,
  completion,
  type FedStream,
  fedStream,
  helloStream,
  usage,
  usageChunk,
} from "../support/upstream.ts";
import { loadTokenizer } from "../../src/pricing/tokenizer.ts";
import { createWorld, testPricing, type World } from "../support/world.ts";

// Loaded before the clock is moved, since loading takes real time.
await loadTokenizer();

/** A running stream, of which its caller has read these pieces. */
async function streaming(world: World, pieces: string[], fields = {}) {
  const fed = fedStream();
  world.upstream.once(() => fed.response);
  const reader = openReader(await chatStream(world, { max_tokens: 100, ...fields }));
  for (const content of pieces) {
    fed.send(chunk({ content }));
    await reader.read();
  }
  return { fed, reader };
}

function finish(fed: FedStream): void {
  fed.send(chunk({ content: " and more" }));
  fed.send(chunk({}, "stop"));
  fed.send(usageChunk());
  fed.send("[DONE]");
}

Deno.test("chat abort: a caller who disconnects ends the upstream's response, and pays for what arrived", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const { fed, reader } = await streaming(world, ["Hello", " there", ","]);
  const hold = Number((await world.balance("ada")).held);
  await reader.leave();
  await fed.cancelled; // case 51: the clock has not moved
  await world.app.running.idle();
  const [entry, ...more] = await usageOf(world);
  assert.equal(more.length, 0);
  assert.equal(entry?.amount, "0.000014"); // 8 of prompt and 3 * 2
  assert.ok(Number(entry?.amount) <= hold);
  assert.equal(entry?.usage.source, "estimated");
  assert.deepEqual(await world.balance("ada"), {
    balance: "0.999986",
    held: "0",
    available: "0.999986",
  });
});

Deno.test("chat abort: a caller who disconnects while the next chunk is awaited pays for what arrived", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const { fed, reader } = await streaming(world, ["Hello there"]);
  const awaited = reader.read();
  await reader.leave();
  await awaited;
  await fed.cancelled; // case 51
  await world.app.running.idle();
  assert.equal((await usageOf(world))[0]?.amount, "0.000012");
  assert.equal((await world.balance("ada")).held, "0");
});

Deno.test("chat abort: after an early usage report, a caller who disconnects also pays for later output", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const { fed, reader } = await streaming(world, []);
  fed.send(usageChunk(usage(10, 1)));
  for (const content of ["Hello", " there", ","]) {
    fed.send(chunk({ content }));
    await reader.read();
  }
  await reader.leave();
  await fed.cancelled;
  await world.app.running.idle();
  assert.equal((await usageOf(world))[0]?.amount, "0.000016"); // 10 of prompt and 3 * 2
});

Deno.test("chat abort: with usage on every chunk, a caller who disconnects pays by the last report", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const { fed, reader } = await streaming(world, []);
  for (const output of [2, 4]) {
    fed.send(
      chunk({ content: "Hello there, again and again" }, null, { usage: usage(10, output) }),
    );
    await reader.read();
  }
  await reader.leave();
  await fed.cancelled;
  await world.app.running.idle();
  assert.equal((await usageOf(world))[0]?.amount, "0.000018"); // 10 of prompt and 4 * 2
});

Deno.test("chat abort: a caller who disconnects before the first token pays for the prompt", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const { fed, reader } = await streaming(world, []);
  await reader.leave();
  await fed.cancelled;
  await world.app.running.idle();
  const [entry] = await usageOf(world);
  assert.deepEqual([entry?.amount, entry?.usage.outputTokens], ["0.000008", 0]); // case 52
  assert.equal((await world.balance("ada")).held, "0");
});

Deno.test("chat abort: a caller who disconnects before the upstream's headers pays for the prompt", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const left = new AbortController();
  world.upstream.once(() => {
    left.abort();
    return new Promise(() => {});
  });
  await chatStream(world, { max_tokens: 100 }, { signal: left.signal });
  assert.ok(world.upstream.calls[0]?.signal.aborted);
  assert.deepEqual((await usageOf(world)).map(({ amount }) => amount), ["0.000008"]); // case 52
  assert.equal((await world.balance("ada")).held, "0");
  assert.equal(world.app.running.size, 0);
});

Deno.test("chat abort: a caller who has disconnected before the upstream is called leaves no call behind", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  world.upstream.reply(() => new Promise(() => {}));
  const signal = AbortSignal.abort();
  const asked = chatStream(world, { max_tokens: 100 }, { signal });
  await world.clock.advance(1_000);
  assert.equal(world.app.running.size, 0); // case 52
  assert.equal((await world.balance("ada")).held, "0");
  await asked;
});

for (const stage of ["before", "during"]) {
  Deno.test(`chat abort: a response that is not streamed, abandoned ${stage}, is charged exactly`, async () => {
    using world = await createWorld();
    await world.deposit("ada", "1");
    const left = new AbortController();
    if (stage === "before") left.abort();
    world.upstream.once(() => {
      left.abort();
      return completion();
    });
    await chat(world, {}, { signal: left.signal });
    const [entry] = await usageOf(world);
    assert.deepEqual([entry?.amount, entry?.usage.source], ["0.00002", "provider"]); // case 52
    assert.equal((await world.balance("ada")).held, "0");
  });
}

const price = testPricing.models["test-model"];
const drains: [string, Record<string, unknown>, Record<string, unknown>][] = [
  [
    "a model that reasons",
    { pricing: { models: { "test-model": { ...price, reasoning: true } } } },
    {},
  ],
  ["a price that says drain", {
    pricing: { models: { "test-model": { ...price, onAbort: "drain" } } },
  }, {}],
  ["an upstream that says drain", { upstream: { url: "https://own.test", onAbort: "drain" } }, {}],
  ["a caller who asks for reasoning", {}, { reasoning_effort: "high" }],
];

for (const [name, project, fields] of drains) {
  Deno.test(`chat abort: with ${name} the response is drained and charged exactly`, async () => {
    using world = await createWorld({ project });
    await world.deposit("ada", "1");
    const { fed, reader } = await streaming(world, ["Hello"], fields);
    const leaving = reader.leave();
    finish(fed);
    await leaving;
    await world.app.running.idle();
    const [entry] = await usageOf(world); // case 51
    assert.deepEqual([entry?.amount, entry?.usage.source], ["0.00002", "provider"]);
    assert.equal(world.upstream.calls[0]?.signal.aborted, false);
    const { canceled, completed, failed } = world.deps.metrics.chats.chat;
    assert.deepEqual([canceled.value, completed.value, failed.value], [1, 0, 0]);
  });
}

Deno.test("chat abort: a caller who leaves a reasoning model before its headers pays for all of it", async () => {
  const models = { "test-model": { ...price, reasoning: true } };
  using world = await createWorld({ project: { pricing: { models } } });
  await world.deposit("ada", "1");
  const left = new AbortController();
  world.upstream.once(() => {
    left.abort();
    return helloStream();
  });
  await chatStream(world, {}, { signal: left.signal });
  await world.app.running.idle();
  const [entry] = await usageOf(world);
  assert.deepEqual([entry?.amount, entry?.usage.source], ["0.00002", "provider"]); // case 51
  assert.equal((await world.balance("ada")).held, "0");
});

Deno.test("chat abort: a price with onAbort estimate takes precedence over reasoning", async () => {
  const models = { "test-model": { ...price, reasoning: true, onAbort: "estimate" } };
  using world = await createWorld({ project: { pricing: { models } } });
  await world.deposit("ada", "1");
  const { fed, reader } = await streaming(world, ["Hello there"]);
  await reader.leave();
  await fed.cancelled;
  await world.app.running.idle();
  assert.equal((await usageOf(world))[0]?.usage.source, "estimated"); // case 51
});

Deno.test("chat abort: a drained upstream that goes silent is aborted at its limit", async () => {
  using world = await createWorld({ env: { UPSTREAM_IDLE_MS: "30000" } });
  await world.deposit("ada", "1");
  const { fed, reader } = await streaming(world, ["Hello there"], { reasoning_effort: "low" });
  const leaving = reader.leave();
  await world.clock.advance(31_000);
  await leaving;
  await fed.cancelled;
  assert.equal((await usageOf(world)).length, 1); // case 54
  assert.equal((await world.balance("ada")).held, "0");
});

Deno.test("chat abort: disconnecting at the very end charges once", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  for (let reads = 0; reads < 8; reads++) {
    world.upstream.once(helloStream);
    const reader = openReader(await chatStream(world));
    for (let i = 0; i < reads; i++) await reader.read();
    await reader.leave();
    await world.app.running.idle();
    assert.equal((await usageOf(world)).length, reads + 1); // case 51
    assert.equal((await world.balance("ada")).held, "0");
  }
});

Deno.test("chat abort: the upstream is not read ahead of a slow reader", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  let read = 0;
  const frame = new TextEncoder().encode(`data: ${JSON.stringify(chunk({ content: "a" }))}\n\n`);
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      read++;
      controller.enqueue(frame);
    },
  }, { highWaterMark: 0 });
  const headers = { "content-type": "text/event-stream" };
  world.upstream.once(() => new Response(body, { headers }));
  const reader = openReader(await chatStream(world));
  for (let taken = 1; taken <= 20; taken++) {
    await reader.read();
    await world.clock.advance(0);
    assert.ok(read <= taken + 1, `${read} read for ${taken} taken`); // case 53
  }
  await reader.leave();
});

const stopping = new ApiError(503, {
  message: "The service is stopping.",
  code: "server_shutdown",
});

Deno.test("chat abort: a response that is cut short tells its reader, and what arrived is charged", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const { fed, reader } = await streaming(world, ["Hello there"]);
  const awaited = reader.read();
  world.app.running.cutAll(stopping);
  assert.match(await awaited ?? "", /^data: \{"error":\{.*"code":"server_shutdown"\}\}\n\n$/); // case 49
  assert.equal(await reader.read(), null);
  await fed.cancelled;
  assert.equal(world.app.running.size, 0);
  assert.equal((await usageOf(world))[0]?.amount, "0.000012");
  assert.equal((await world.balance("ada")).held, "0");
});

Deno.test("chat abort: a caller who leaves before the model responds ends the call, and pays for the prompt", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  world.upstream.once(() => new Promise(() => {}));
  const reader = openReader(await until(world, callStream(world), 500));
  assert.equal(await reader.read(), ": keep-alive\n\n");
  const next = reader.read();
  await world.clock.advance(15_000);
  assert.equal(await next, ": keep-alive\n\n", "and it goes on");
  await reader.leave();
  await world.app.running.idle();
  assert.ok(world.upstream.calls[0]?.signal.aborted); // case 52
  assert.ok(!JSON.stringify(world.logged).includes("stream_broken"));
  assert.deepEqual((await usageOf(world)).map(({ amount }) => amount), ["0.000008"]);
  assert.equal((await world.balance("ada")).held, "0");
});

Deno.test("chat abort: a late response is passed on whole", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  world.upstream.once(async () => {
    await world.clock.sleep(40_000);
    return helloStream();
  });
  const text = await until(world, callStream(world).then((response) => response.text()), 1_000);
  const [first, ...frames] = text.split("\n\n");
  assert.deepEqual([first, frames.at(-2)], [": keep-alive", "data: [DONE]"]);
  assert.match(text, /Hello[^]* there/);
  assert.equal((await usageOf(world))[0]?.usage.source, "provider");
});

Deno.test("chat abort: a response that is cut short ends even if its reader does not read on", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const { fed } = await streaming(world, ["Hello there"]);
  world.app.running.cutAll(stopping); // as after an hour, or when the process stops
  await world.clock.advance(1_000);
  await fed.cancelled;
  assert.equal(world.app.running.size, 0); // case 53
  assert.equal((await usageOf(world))[0]?.amount, "0.000012");
  assert.equal((await world.balance("ada")).held, "0");
});

Deno.test("chat abort: a response that is not streamed and cut short is free", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  world.upstream.once(() => {
    world.app.running.cutAll(stopping);
    return new Promise(() => {});
  });
  const { status, body } = await chat(world);
  assert.deepEqual([status, body.error.code], [503, "server_shutdown"]);
  assert.deepEqual(await world.balance("ada"), { balance: "1", held: "0", available: "1" });
  assert.equal(world.app.running.size, 0);
});
