import assert from "node:assert/strict";
import { modelFormats, wholeResponse } from "../support/model_formats.ts";
import { completion, usage } from "../support/upstream.ts";
import { createWorld, testPricing, type World } from "../support/world.ts";

const responseCache = { enabled: true, maxAgeSeconds: 3600, costFactor: "0", scope: "project" };
const said = { id: "1", text: "Hello there", tokens: { input: 10, output: 5 } };

async function cachingWorld(pricing: unknown = testPricing): Promise<World> {
  const world = await createWorld({ project: { responseCache, pricing } });
  world.upstream.reply(({ url }) => {
    if (!url.endsWith("/chat/completions") && url.endsWith("/completions")) {
      const choices = [{ index: 0, text: said.text, finish_reason: "stop", logprobs: null }];
      return Response.json({ object: "text_completion", choices, usage: usage(10, 5) });
    }
    const format = modelFormats.find(([{ path }]) => url.endsWith(path))?.[0];
    return format ? wholeResponse(format, said) : completion();
  });
  await world.deposit("ada", "1");
  return world;
}

const endpoints = [
  ...modelFormats.filter(([{ hasOutput }]) => hasOutput).map(([{ path, body }]) => ({
    path: `/v1${path}`,
    bodyOf: (user: string, stream: boolean) => body({ user, stream, cap: 99 }),
  })),
  {
    path: "/v1/completions",
    bodyOf: (user: string, stream: boolean) => ({
      ...{ model: "test-model", prompt: "Hi", user, max_tokens: 99 },
      ...(stream ? { stream } : {}),
    }),
  },
];

for (const { path, bodyOf } of endpoints) {
  for (const stream of [false, true]) {
    const shape = stream ? "streamed" : "whole";
    Deno.test(`cache: a free hit is none for a user without money: ${path}, ${shape}`, async () => {
      using world = await cachingWorld();
      const ask = async (user: string, isStream: boolean) => {
        const headers = { "x-service-user": user };
        const response = await world.call(path, { body: bodyOf(user, isStream), headers });
        const names = ["x-service-cache", "x-service-paywall"];
        const [cached, paywall] = names.map((name) => response.headers.get(name));
        return { cached, paywall, text: await response.text() };
      };
      assert.equal((await ask("ada", false)).cached, "miss");
      for (const amount of [null, "0.000001"]) {
        if (amount) await world.deposit("eve", amount);
        const { paywall, text } = await ask("eve", stream);
        assert.equal(paywall, "insufficient_funds", `with ${amount}`);
        assert.doesNotMatch(text, /Hello there/);
      }
      await world.deposit("eve", "0.01");
      const { cached, text } = await ask("eve", stream);
      assert.equal(cached, "hit");
      assert.match(text, /Hello there/);
      assert.equal((await world.balance("eve")).balance, "0.010001");
      assert.equal(world.upstream.calls.length, 1);
    });
  }
}

Deno.test("cache: a free model's kept response is for everyone", async () => {
  const free = { models: { "test-model": { input: "0", output: "0", maxOutputTokens: 1000 } } };
  using world = await cachingWorld(free);
  for (const [user, expected] of [["ada", "miss"], ["eve", "hit"]]) {
    const body = { model: "test-model", messages: [{ role: "user", content: "Hi" }], user };
    const { headers } = await world.call("/v1/chat/completions", { body });
    assert.equal(headers.get("x-service-cache"), expected);
  }
});
