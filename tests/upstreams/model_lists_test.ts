import assert from "node:assert/strict";
import { requestByFetch } from "../../src/http/by_fetch.ts";
import { createModelLists, type ModelList } from "../../src/upstreams/model_lists.ts";
import type { Upstream } from "../../src/upstreams/upstream.ts";
import { createHandClock } from "../support/clock.ts";
import { upstreamNamed } from "../support/targets.ts";
import { type Body, createWorld } from "../support/world.ts";

const idsOf = (list: ModelList | null) => list && [...list.keys()];
const listing = (...ids: string[]) => Response.json({ data: ids.map((id) => ({ id })) });

/** Lists of an upstream, whose next answers `answer` gives; `asked` counts the questions. */
function listsOf(answer: (signal: AbortSignal) => Response | Promise<Response>) {
  const clock = createHandClock();
  const events: string[] = [];
  const lists = createModelLists({ clock, log: (_level, event) => void events.push(event) });
  let asked = 0;
  const upstream: Upstream = {
    ...upstreamNamed("it"),
    request: requestByFetch(async (url, init) => {
      asked++;
      return await answer(new Request(url, init).signal);
    }),
  };
  return { clock, lists, upstream, events, asked: () => asked };
}

/** An upstream that says nothing until it is given up. */
const silence = (signal: AbortSignal) =>
  new Promise<Response>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason));
  });

Deno.test("model lists: a list is read again after a minute for a caller who waits for it", async () => {
  let ids = ["a"];
  const { clock, lists, upstream, asked } = listsOf(() => listing(...ids));
  assert.deepEqual(idsOf(await lists.read(upstream)), ["a"]);
  ids = ["b"];
  await clock.advance(59_000);
  assert.deepEqual(idsOf(await lists.read(upstream)), ["a"]);
  await clock.advance(1_000);
  assert.deepEqual(idsOf(await lists.read(upstream)), ["b"]);
  assert.equal(asked(), 2);
});

Deno.test("model lists: calls wait for nothing, and ask at most every five minutes", async () => {
  let ids = ["a"];
  const { clock, lists, upstream, asked } = listsOf(() => listing(...ids));
  assert.equal(lists.known(upstream), null);
  await clock.advance(0);
  assert.deepEqual(idsOf(lists.known(upstream)), ["a"]);
  ids = ["b"];
  await clock.advance(299_000);
  assert.deepEqual(idsOf(lists.known(upstream)), ["a"]);
  assert.equal(asked(), 1);
  await clock.advance(1_000);
  assert.deepEqual(idsOf(lists.known(upstream)), ["a"]);
  await clock.advance(0);
  assert.deepEqual(idsOf(lists.known(upstream)), ["b"]);
  assert.equal(asked(), 2);
});

Deno.test("model lists: a silent upstream delays one caller for two seconds, and no other", async () => {
  let answer: (signal: AbortSignal) => Response | Promise<Response> = silence;
  const { clock, lists, upstream, events } = listsOf((signal) => answer(signal));
  const first = lists.read(upstream);
  await clock.advance(1_999);
  assert.equal(clock.waiting, 2);
  await clock.advance(1);
  assert.deepEqual(idsOf(await first), []);
  for (let time = 0; time < 5; time++) {
    assert.deepEqual(idsOf(await lists.read(upstream)), []);
    await clock.advance(30_000);
  }
  assert(events.length > 0 && events.every((event) => event === "upstream_models_failed"));
  answer = () => listing("back");
  await clock.advance(60_000);
  await lists.read(upstream);
  await clock.advance(0);
  assert.deepEqual(idsOf(await lists.read(upstream)), ["back"]);
});

Deno.test("model lists: the last list is used while its upstream is down", async () => {
  let answer = () => listing("a");
  const { clock, lists, upstream } = listsOf(() => answer());
  await lists.read(upstream);
  answer = () => new Response("down", { status: 500 });
  for (let time = 0; time < 3; time++) {
    await clock.advance(300_000);
    assert.deepEqual(idsOf(await lists.read(upstream)), ["a"]);
    assert.deepEqual(idsOf(lists.known(upstream)), ["a"]);
  }
});

const shapes: readonly (readonly [string, unknown, string[]])[] = [
  ["Together's bare list", [{ id: "x" }, { id: "y" }], ["x", "y"]],
  ["Google's names", { data: [{ id: "models/gemini" }] }, ["gemini"]],
  ["a name that is listed twice", { data: [{ id: "x" }, { id: "x" }] }, ["x"]],
  ["what is no model", { data: [1, null, {}, { id: 1 }, { id: "" }, { id: "x" }] }, ["x"]],
  ["a name that is too long", { data: [{ id: "x".repeat(257) }] }, []],
  ["no list", { data: "x" }, []],
  ["null", null, []],
];
for (const [what, body, expected] of shapes) {
  Deno.test(`model lists: ${what} is read as ${expected.length} names`, async () => {
    const { lists, upstream } = listsOf(() => Response.json(body));
    assert.deepEqual(idsOf(await lists.read(upstream)), expected);
  });
}

const providerLists: readonly (readonly [Body, string | null])[] = [
  [{ provider: "anthropic" }, "https://api.anthropic.com/v1/models?limit=1000"],
  [{ provider: "mistral" }, "https://api.mistral.ai/v1/models"],
  [
    { provider: "google" },
    "https://generativelanguage.googleapis.com/v1beta/openai/models",
  ],
  [{ provider: "azure", url: "https://my.openai.azure.com" }, null],
];
for (const [settings, url] of providerLists) {
  Deno.test(`model lists: ${settings.provider} is asked at ${url}`, async () => {
    using world = await createWorld({
      project: {
        upstreams: { it: { apiKey: "its-key", ...settings } },
        routes: { "*": { targets: [{ upstream: "it" }] } },
        pricing: { models: { "*": { input: "1", output: "2" } } },
      },
    });
    world.upstream.reply(() => listing("x"));
    const { body } = await world.json("/v1/models");
    assert.deepEqual(body.data.map(({ id }: Body) => id), url === null ? [] : ["x"]);
    assert.deepEqual(world.upstream.calls.map((call) => call.url), url === null ? [] : [url]);
    const { headers } = world.upstream.calls[0] ?? {};
    const isAnthropic = settings.provider === "anthropic";
    assert.equal(headers?.get("anthropic-version") ?? null, isAnthropic ? "2023-06-01" : null);
  });
}
