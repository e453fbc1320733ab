import assert from "node:assert/strict";
import fc from "fast-check";
import { usageOf } from "../../support/chat.ts";
import { always, anyText, jsonText, spoiled } from "../../support/property.ts";
import {
  framesOf,
  functionCall,
  message,
  openAiClient,
  readResponseEvents,
  respond,
  respondStream,
  responsesPath,
  tokens,
  upstreamEvents,
  upstreamResponse,
} from "../../support/responses.ts";
import { sseBytes } from "../../support/upstream.ts";
import { loadTokenizer } from "../../../src/pricing/tokenizer.ts";
import { type Body, createWorld, type World } from "../../support/world.ts";

// Loaded before the clock is moved, since loading takes real time.
await loadTokenizer();

const reasoning = {
  id: "rs_1",
  type: "reasoning",
  summary: [{ type: "summary_text", text: "Hm" }],
};
const refusal = message("", { id: "msg_r", content: [{ type: "refusal", refusal: "No, sorry." }] });
const outputs: Body[][] = [
  [message("Grüße, 😀 there: hello")],
  [reasoning, message("One."), message("Two.", { id: "msg_2" })],
  [message("Calling"), functionCall()],
  [functionCall()],
  [refusal],
  [],
];

const response = fc.record({
  output: fc.constantFrom(...outputs),
  usage: fc.constantFrom<unknown>(tokens(10, 5), null, undefined, {}, { input_tokens: "x" }),
  status: fc.constantFrom("completed", "incomplete"),
  incomplete_details: fc.constantFrom(null, { reason: "max_output_tokens" }),
}).map((fields) => upstreamResponse(fields));

const worlds = {
  rich: { project: {}, money: "1000" },
  low: { project: { lowBalance: "99999" }, money: "1000" },
};

async function worldOf(kind: keyof typeof worlds): Promise<World> {
  const world = await createWorld({ project: worlds[kind].project });
  await world.deposit("ada", worlds[kind].money);
  return world;
}

const encoder = new TextEncoder();

function inPieces(text: string, places: readonly number[]): Response {
  const bytes = encoder.encode(text);
  const ends = [...new Set(places.map((place) => place % bytes.length)), bytes.length]
    .sort((a, b) => a - b);
  return sseBytes(ends.map((end, at) => bytes.slice(ends[at - 1] ?? 0, end)));
}

Deno.test("responses property: however a stream is cut into pieces, its events are the same", async () => {
  using world = await worldOf("rich");
  await always(
    40,
    fc.asyncProperty(response, fc.array(fc.nat(8_000), { maxLength: 25 }), async (sent, places) => {
      const events = upstreamEvents(sent);
      world.upstream.once(() => inPieces(framesOf(events), places));
      const streamed = await respondStream(world);
      if (sent.output.length === 0 && !sent.usage?.output_tokens) {
        return void streamed.body?.cancel();
      }
      const got = await readResponseEvents(streamed);
      assert.deepEqual(got.slice(0, -1), events.slice(0, -1));
      assert.deepEqual(got.at(-1)?.response.output, sent.output);
      assert.equal(got.at(-1)?.type, events.at(-1)?.type);
    }),
  );
});

const changes = fc.array(
  fc.record({ at: fc.nat(30), how: fc.constantFrom("drop", "double", "swap", "bare") }),
  { maxLength: 6 },
);

/** The events with some of them lost, doubled, in another place, or with little in them. */
function disordered(
  events: Body[],
  changes: readonly { at: number; how: "drop" | "double" | "swap" | "bare" }[],
): Body[] {
  const changed = [...events];
  for (const { at, how } of changes) {
    const place = at % Math.max(1, changed.length);
    const [one] = changed.splice(place, 1);
    if (!one || how === "drop") continue;
    if (how === "double") changed.splice(place, 0, one, one);
    if (how === "swap") changed.splice(Math.max(0, place - 1), 0, one);
    const { type, delta } = one;
    if (how === "bare") changed.splice(place, 0, { type, ...(delta ? { delta } : {}) });
  }
  return changed;
}

for (const kind of ["rich", "low"] as const) {
  Deno.test(`responses property: OpenAI's client accepts every stream that ends (${kind})`, async () => {
    using world = await worldOf(kind);
    const { responses } = openAiClient(world);
    const ask = { model: "test-model", input: "Hi" };
    await always(
      100,
      fc.asyncProperty(
        fc.constantFrom(...outputs.slice(0, 5)),
        changes,
        async (output, changes) => {
          const events = disordered(upstreamEvents(upstreamResponse({ output })), changes);
          world.upstream.once(() => inPieces(framesOf(events), []));
          const verdict = await responses.stream(ask).finalResponse().then(
            () => "accepted",
            (error) => String(error.message),
          );
          assert.match(verdict, /^accepted$|closed the connection|^502 /);
        },
      ),
    );
  });
}

/** What a stream has said at its end has been said before, in deltas of the same items. */
function assertWhole(events: Body[]): void {
  const end = events.at(-1)?.response;
  assert.ok(end.usage.cost >= 0 && Array.isArray(end.output));
  const numbers = events.map(({ sequence_number: number }) => number);
  for (const [at, number] of numbers.entries()) {
    assert.ok(at === 0 || number > numbers[at - 1], `${numbers}`);
  }
  const begun = new Set<unknown>();
  for (const { type, item, item_id: id } of events) {
    if (type === "response.output_item.added") begun.add(item.id);
    if (/output_text\.delta/.test(type)) assert.ok(begun.has(id), `${id} has not begun`);
  }
}

for (const kind of ["rich", "low"] as const) {
  Deno.test(`responses property: events that are lost, doubled or in disorder are charged and end (${kind})`, async () => {
    using world = await worldOf(kind);
    await always(
      150,
      fc.asyncProperty(
        response,
        changes,
        async (sent, changes) => {
          const events = disordered(upstreamEvents(sent), changes);
          const before = (await usageOf(world)).map(({ id }) => id);
          world.upstream.once(() => inPieces(framesOf(events), []));
          const streamed = await respondStream(world);
          if (streamed.status !== 200) {
            assert.equal(streamed.status, 502);
            await streamed.body?.cancel();
          } else {
            const got = await readResponseEvents(streamed);
            const last = got.at(-1)?.type;
            assert.ok(/^(error|response\.(completed|incomplete))$/.test(last), last);
            if (last !== "error") assertWhole(got);
            const said = got.some(({ type }) => /\.delta$/.test(type)) || last !== "error";
            const charged = (await usageOf(world)).some(({ id }) => !before.includes(id));
            assert.ok(!said || charged, "delivered for free");
          }
          assert.equal((await world.balance("ada")).held, "0");
        },
      ),
    );
  });
}

Deno.test("responses property: no upstream's answer, whole or streamed, crashes anything", async () => {
  using world = await worldOf("low");
  const spoiledBody = response.chain(spoiled);
  const spoiledFrames = response.chain((sent) => spoiled(upstreamEvents(sent)))
    .map((text) => framesOf([JSON.parse(text)].flat().map((event) => event ?? {})));
  const anyBody = fc.oneof(jsonText, anyText, spoiledBody, spoiledFrames);
  await always(
    150,
    fc.asyncProperty(anyBody, fc.boolean(), fc.boolean(), async (text, stream, isEvents) => {
      const type = isEvents ? "text/event-stream" : "application/json";
      world.upstream.once(() => new Response(text, { headers: { "content-type": type } }));
      const got = stream ? await respondStream(world) : await world.call(responsesPath, {
        body: { model: "test-model", input: "a", user: "ada" },
      });
      await got.text();
      assert.ok([200, 400, 404, 413, 429, 502].includes(got.status), `${got.status}`);
      assert.equal((await world.balance("ada")).held, "0");
    }),
  );
  assert.deepEqual(world.logged.filter(({ code }) => code === "internal_error"), []);
});

Deno.test("responses property: no request crashes anything", async () => {
  using world = await worldOf("rich");
  world.upstream.reply(() => Response.json(upstreamResponse()));
  const whole = {
    input: [
      { role: "user", content: [{ type: "input_text", text: "a" }] },
      { type: "function_call_output", call_id: "c", output: [{ type: "input_image" }] },
      { type: "item_reference", id: "msg_paywall_A" },
    ],
    tools: [{ type: "namespace", tools: [{ type: "web_search" }] }, { type: "shell" }],
    tool_choice: { type: "allowed_tools", mode: "auto", tools: [{ type: "web_search" }] },
    text: { format: { type: "text" } },
    prompt_cache_options: { ttl: "12h" },
    previous_response_id: "resp_paywall_A",
    reasoning: { effort: "low" },
  };
  const value = fc.oneof(
    fc.constantFrom<unknown>(null, true, 0, -1, 1.5, "", "a", [], {}, [null], [[]], [{}], {
      type: 1,
    }),
    fc.jsonValue({ maxDepth: 3 }),
  );
  const changed = fc.tuple(fc.constantFrom(...Object.keys(whole)), value)
    .map(([name, changed]) => ({ ...whole, [name]: changed }));
  const inItem = value.map((content) => ({ ...whole, input: [{ role: "user", content }] }));
  const inTool = value.map((tools) => ({ ...whole, tools: [{ type: "namespace", tools }] }));
  const output = value.map((output) => ({ ...whole, input: [{ type: "x", output, id: "i" }] }));
  await always(
    200,
    fc.asyncProperty(fc.oneof(changed, inItem, inTool, output), async (fields) => {
      const { status, body } = await respond(world, fields);
      assert.ok([200, 400, 404].includes(status), `${status} ${JSON.stringify(body)}`);
    }),
  );
});
