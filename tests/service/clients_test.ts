import assert from "node:assert/strict";
import { usageOf } from "../support/chat.ts";
import {
  type Asker,
  type AskOptions,
  direct,
  type Line,
  openaiClient,
  streamAskers,
  throughService,
  wholeAskers,
} from "../support/clients.ts";
import {
  chunk,
  completion,
  helloStream,
  type ReceivedCall,
  sse,
  usage,
  usageChunk,
} from "../support/upstream.ts";
import OpenAI from "openai";
import { createWorld, type World } from "../support/world.ts";

interface Scenario {
  answer: (call: ReceivedCall) => Response;
  options?: AskOptions;
}

const toolCalls = [0, 1].map((index) => ({
  index,
  id: `call_${index}`,
  type: "function",
  function: { name: "weather", arguments: `{"city":"Oslo ${index}"}` },
}));

function callPieces() {
  return toolCalls.flatMap(({ index, id, type, function: { name, arguments: text } }) => [
    chunk({ tool_calls: [{ index, id, type, function: { name, arguments: "" } }] }),
    chunk({ tool_calls: [{ index, function: { arguments: text.slice(0, 7) } }] }),
    chunk({ tool_calls: [{ index, function: { arguments: text.slice(7) } }] }),
  ]);
}

function refusal(status: number, error: Record<string, unknown>): () => Response {
  // Where a server does not say when to retry, the client does, and some clients retry more often.
  const headers: Record<string, string> = status === 429 ? { "retry-after": "1" } : {};
  return () => Response.json({ error: { param: null, ...error } }, { status, headers });
}

const badTemperature = {
  message: "temperature is too high",
  type: "invalid_request_error",
  param: "temperature",
  code: "decimal_above_max_value",
};

const refusals: Record<string, Scenario> = {
  "a 400": { answer: refusal(400, badTemperature) },
  "a 404": {
    answer: refusal(404, {
      message: "no such model",
      type: "invalid_request_error",
      code: "model_not_found",
    }),
  },
  "a 429": {
    answer: refusal(429, {
      message: "slow down",
      type: "rate_limit_error",
      code: "rate_limit_exceeded",
    }),
  },
  "a 500": {
    answer: refusal(500, { message: "oh", type: "server_error", code: "upstream_error" }),
  },
};

const whole: Record<string, Scenario> = {
  "an answer": { answer: () => completion() },
  "an answer cut short": {
    answer: () =>
      completion({
        choices: [{
          index: 0,
          message: { role: "assistant", content: "Hel" },
          finish_reason: "length",
        }],
      }),
  },
  "an answer with cached tokens": {
    answer: () =>
      completion({ usage: usage(10, 5, { prompt_tokens_details: { cached_tokens: 4 } }) }),
  },
  "tool calls": {
    answer: () =>
      completion({
        choices: [{
          index: 0,
          message: { role: "assistant", content: null, tool_calls: toolCalls },
          finish_reason: "tool_calls",
        }],
      }),
    options: { tools: true },
  },
  ...refusals,
};

const role = chunk({ role: "assistant", content: "" });

/** A stream as OpenAI sends it: with usage only on request. */
function streaming(...events: unknown[]): (call: ReceivedCall) => Response {
  return ({ body }) => sse([role, ...events, ...(body.stream_options ? [usageChunk()] : [])]);
}

function withComments({ body }: ReceivedCall): Response {
  const used = body.stream_options ? [usageChunk()] : [];
  const text = [role, chunk({ content: "Hi" }), chunk({}, "stop"), ...used].map((frame) =>
    `: keep-alive\n\ndata: ${JSON.stringify(frame)}\n\n`
  ).join("");
  return new Response(`${text}data: [DONE]\n\n`, {
    headers: { "content-type": "text/event-stream" },
  });
}

const outOfMemory = { message: "out of memory", type: "server_error", param: null, code: "oom" };

const streamed: Record<string, Scenario> = {
  "an answer": {
    answer: streaming(chunk({ content: "Hello" }), chunk({ content: " there" }), chunk({}, "stop")),
  },
  "an answer cut short": { answer: streaming(chunk({ content: "Hel" }), chunk({}, "length")) },
  "comments between the pieces": { answer: withComments },
  "tool calls": { // case 48
    answer: streaming(...callPieces(), chunk({}, "tool_calls")),
    options: { tools: true },
  },
  "an error in mid-stream": { // case 49, case 50
    answer: () => sse([role, chunk({ content: "Hel" }), { error: outOfMemory }]),
  },
  ...refusals,
};

/** What a client makes of it, or its error; all server errors are one. */
async function verdictOf(ask: Asker, line: Line, options?: AskOptions): Promise<unknown> {
  try {
    return await ask(line, options);
  } catch (error) {
    assert.ok(error instanceof Error || typeof error === "object" && error !== null);
    const { name, status, statusCode, code, type, param, message } = error as Record<
      string,
      unknown
    >;
    const number = Number(status ?? statusCode ?? 0);
    if (number >= 500) return { name, status: "5xx" };
    return { name, status: number, code, type, param, message };
  }
}

async function worldWithMoney(): Promise<World> {
  const world = await createWorld();
  await world.deposit("ada", "1");
  return world;
}

for (
  const [kind, askers, scenarios] of [
    ["whole", wholeAskers, whole],
    ["streamed", streamAskers, streamed],
  ] as const
) {
  for (const [client, ask] of Object.entries(askers)) {
    for (const [name, { answer, options }] of Object.entries(scenarios)) {
      Deno.test(`clients: ${client} gets the same result from ${name}, ${kind}, as without Farebox`, async () => {
        using world = await worldWithMoney();
        world.upstream.reply(answer);
        const expected = await verdictOf(ask, direct(world), options);
        const verdict = await verdictOf(ask, throughService(world), options);
        assert.deepEqual(verdict, expected); // case 68
        assert.equal((await world.balance("ada")).held, "0");
      });
    }
  }
}

const repaired: Record<string, { answer: () => Response; text: string }> = {
  "a stream without finish_reason": { // case 55
    answer: () => sse([role, chunk({ content: "Hi" })]),
    text: "Hi",
  },
  "JSON where a stream was asked for": { answer: () => completion(), text: "Hello there" }, // case 45
};

for (const [client, ask] of Object.entries(streamAskers)) {
  for (const [name, { answer, text }] of Object.entries(repaired)) {
    Deno.test(`clients: ${client} gets a complete response from ${name}`, async () => {
      using world = await worldWithMoney();
      world.upstream.once(answer);
      const verdict = await ask(throughService(world));
      assert.deepEqual([verdict.text, verdict.finish], [text, "stop"]);
    });
  }
}

for (const [kind, askers] of [["whole", wholeAskers], ["streamed", streamAskers]] as const) {
  for (const [client, ask] of Object.entries(askers)) {
    for (const tools of [false, true]) {
      Deno.test(`clients: ${client} shows the paywall, ${kind}${tools ? ", with tools" : ""}`, async () => {
        using world = await createWorld();
        const verdict = await ask(throughService(world), { tools });
        assert.match(verdict.text, /Top up here to continue: https:\/\/farebox\.test\/t\//);
        assert.equal(verdict.finish, "stop"); // case 57, case 58
        assert.deepEqual(verdict.calls, []);
        assert.equal(world.upstream.calls.length, 0);
      });
    }

    Deno.test(`clients: ${client} retries two errors (${kind}), and one response is charged`, async () => {
      using world = await worldWithMoney();
      const fault = refusal(500, { message: "oh" });
      world.upstream.once(fault);
      world.upstream.once(fault);
      world.upstream.reply(kind === "whole" ? () => completion() : helloStream);
      const { text } = await ask(throughService(world), { maxRetries: 2 });
      assert.equal(text, "Hello there"); // case 63
      assert.equal(world.upstream.calls.length, 3);
      assert.deepEqual((await usageOf(world)).map(({ amount }) => amount), ["0.00002"]);
      assert.equal((await world.balance("ada")).balance, "0.99998");
    });
  }
}

Deno.test("clients: openai lists and finds the models", async () => {
  using world = await createWorld();
  const client = openaiClient(throughService(world));
  const ids: string[] = [];
  for await (const model of client.models.list()) ids.push(model.id);
  assert.deepEqual(ids, ["test-model"]); // case 4
  assert.equal((await client.models.retrieve("test-model")).object, "model"); // case 5
  const adas = client.withOptions({ baseURL: `${client.baseURL}/ada` });
  assert.equal((await adas.models.retrieve("test-model")).id, "test-model");
  await assert.rejects(client.models.retrieve("none"), OpenAI.NotFoundError);
});

Deno.test("clients: openai's request id is that of the response", async () => {
  using world = await worldWithMoney();
  const client = openaiClient(throughService(world));
  const body = { model: "test-model", messages: [{ role: "user" as const, content: "Hi" }] };
  const answer = await client.chat.completions.create(body);
  assert.match(answer._request_id ?? "", /^req_/);
  const refused = client.chat.completions.create({ ...body, model: "none" });
  await assert.rejects(refused, (error) => {
    assert.ok(error instanceof OpenAI.NotFoundError);
    assert.match(error.requestID ?? "", /^req_/);
    return error.code === "model_not_found"; // case 12
  });
});

Deno.test("clients: a caller who aborts openai's stream pays for what was read", async () => {
  using world = await worldWithMoney();
  world.upstream.once(helloStream);
  const stream = await openaiClient(throughService(world)).chat.completions.create({
    model: "test-model",
    messages: [{ role: "user", content: "Hi" }],
    stream: true,
  });
  for await (const { choices: [choice] } of stream) if (choice?.delta.content) break;
  await world.app.running.idle();
  const [entry] = await usageOf(world);
  assert.equal(entry?.usage.source, "estimated"); // case 51
  assert.ok(Number(entry?.amount) >= 0.00001, entry?.amount);
  assert.equal((await world.balance("ada")).held, "0");
});
