import assert from "node:assert/strict";
import { chat, usageOf } from "../support/chat.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";
import { completion, usage } from "../support/upstream.ts";
import { signedIn, textOf } from "../support/console.ts";
import { deliver, subscribe } from "../support/webhooks.ts";

const path = "/v1/admin/catalogue";
const catalogued = (more: Record<string, unknown> = {}) => ({
  pricing: { catalogue: true },
  ...more,
});

async function worldWith(project: Record<string, unknown>): Promise<World> {
  const world = await createWorld({ project });
  await world.deposit("ada", "1");
  return world;
}

async function statusOf(world: World, model: string): Promise<number> {
  world.upstream.reply(() => completion({ model, usage: usage(1000, 10) }));
  return (await chat(world, { model, max_tokens: 10 })).status;
}

const file = {
  date: "2026-11-25",
  prices: {
    openai: { "gpt-4o": { input: "7", output: "9" }, "gpt-9-nova": { input: "1", output: "2" } },
  },
};
const operate = (world: World, url: string, body: unknown, method = "POST") =>
  world.json(url, { method, key: adminKey, body });

Deno.test("catalogue: exact ids only: a name that begins like another has no price", async () => {
  using world = await worldWith(catalogued());
  for (
    const model of ["gpt-4o", "gpt-4o-2024-08-06", "claude-sonnet-4-5-20250929", "openai/gpt-4o"]
  ) {
    assert.equal(await statusOf(world, model), 200, model);
  }
  const unknown = [
    "gpt-4o-whatever",
    "claude-sonnet-4-5-fast",
    "openai/gpt-4o:online",
    "llama-3.3-70b",
  ];
  for (const model of unknown) assert.equal(await statusOf(world, model), 404, model);
});

Deno.test("catalogue: who serves a model decides its price, by the URL or a setting", async () => {
  const model = "llama-3.3-70b-versatile";
  const own = (upstream: Record<string, string>) => catalogued({ upstream });
  using unknown = await worldWith(own({ url: "https://models.example/v1" }));
  using groq = await worldWith(own({ url: "https://api.groq.com/openai/v1" }));
  using told = await worldWith(own({ url: "https://models.example/v1", provider: "groq" }));
  assert.equal(await statusOf(unknown, model), 404);
  for (const world of [groq, told]) {
    assert.equal(await statusOf(world, model), 200);
    assert.equal((await usageOf(world))[0]?.amount, "0.0005979");
  }
});

Deno.test("catalogue: a refresh shows its difference, takes effect at once, and in other processes soon", async () => {
  using world = await worldWith(catalogued());
  using other = await createWorld({ shareWith: world, seed: 2 });
  const { body: compared } = await operate(world, `${path}/diff`, file);
  assert.deepEqual(
    compared.changes.map(({ model, before }: Body) => [model, before === null]),
    [["gpt-4o", false], ["gpt-9-nova", true]],
  );
  assert.equal(await statusOf(world, "gpt-9-nova"), 404, "a difference changes nothing");
  assert.equal((await operate(world, path, file)).status, 200);
  assert.equal(await statusOf(world, "gpt-9-nova"), 200);
  await chat(world, { model: "gpt-4o", max_tokens: 10 });
  const { body: dates } = await world.json(path, { key: adminKey });
  assert.equal(dates.date, "2026-11-25");
  assert.notEqual(dates.packageDate, dates.date);
  assert.deepEqual((await operate(world, `${path}/diff`, file)).body.changes, []);
  await other.app.sweep();
  assert.equal((await other.json(path, { key: adminKey })).body.date, "2026-11-25");
  for (const each of [world, other]) {
    const owner = await signedIn(each, world.ownerKey);
    const page = `/console/projects/${world.projectId}/pricing/catalogue?q=gpt-9`;
    assert.match(
      textOf((await owner.get(page)).html),
      /refresh of 2026-11-25 changed 2 list prices.*gpt-4o openai \$2\.50 → \$\d.*gpt-9-nova new openai/,
    );
  }
});

Deno.test("catalogue: a refresh without the models of the last one says what becomes of their prices", async () => {
  using world = await worldWith(catalogued());
  await operate(world, path, file);
  const { body } = await operate(world, path, { date: "2026-11-26", prices: {} });
  const after = (wanted: string) => body.changes.find(({ model }: Body) => model === wanted).after;
  assert.equal(body.changes.length, 2);
  assert.equal(after("gpt-4o").input, "2.5", "as it came with Farebox");
  assert.equal(after("gpt-9-nova"), null);
  assert.equal(await statusOf(world, "gpt-9-nova"), 404);
});

Deno.test("catalogue: prices of a day that has not come, or before the package's, are refused", async () => {
  using world = await worldWith(catalogued());
  const { body: { packageDate } } = await world.json(path, { key: adminKey });
  const statusAt = async (now: string, date: string, url = path) => {
    world.clock.set(Date.parse(now) - world.clock.now());
    const { status, body } = await operate(world, url, { ...file, date });
    if (status !== 200) assert.equal(body.error.param, "date");
    return [status, body.error?.message ?? null];
  };
  for (const url of [path, `${path}/diff`]) {
    for (const date of ["9999-12-31", "2026-11-29", "2027-11-27"]) {
      assert.deepEqual(await statusAt("2026-11-27T09:00Z", date, url), [
        400,
        `'date' is ${date}, which is in the future.`,
      ]);
    }
    const [status, says] = await statusAt("2026-11-27", "2026-09-22", url);
    assert.equal(status, 400);
    assert.match(says, /is before 2026-09-23, the day of the prices that came with this version/);
  }
  assert.equal(await statusOf(world, "gpt-9-nova"), 404);
  // It may be the next day already where the file is from.
  for (const date of ["2026-11-28", "2026-11-27", packageDate]) {
    assert.deepEqual(await statusAt("2026-11-27T10:00Z", date), [200, null]);
  }
  assert.equal((await statusAt("2020-01-01", "9999-12-31"))[0], 400, "by a wrong clock, too");
  assert.equal((await statusAt("2020-01-01", "2026-11-25"))[0], 200);
});

Deno.test("catalogue: the file that the package publishes is read too", async () => {
  using world = await worldWith(catalogued());
  const published = [{
    id: "openai",
    name: "OpenAI",
    api_pattern: "x",
    models: [
      {
        id: "gpt-9",
        match: { equals: "gpt-9" },
        prices: { input_mtok: { base: 1, tiers: [{ start: 1000, price: 2 }] }, output_mtok: 3 },
      },
      { id: "tts-9", match: { equals: "tts-9" }, prices: { audio_hours: 1 } },
    ],
  }];
  const { body } = await operate(world, path, { providers: published });
  assert.deepEqual(body.changes, [{
    provider: "openai",
    model: "gpt-9",
    before: null,
    after: { input: "1", output: "3", tiers: [{ above: 1000, input: "2", output: "3" }] },
  }]);
  assert.equal(await statusOf(world, "gpt-9"), 200);
  assert.equal(await statusOf(world, "tts-9"), 404);
});

for (
  const wrong of [{}, { date: "x", prices: {} }, {
    ...file,
    prices: { openai: { a: { input: 1 } } },
  }]
) {
  Deno.test(`catalogue: ${JSON.stringify(wrong)} is refused, and changes nothing`, async () => {
    using world = await worldWith(catalogued());
    assert.equal((await operate(world, path, wrong)).status, 400);
    assert.equal(await statusOf(world, "gpt-9-nova"), 404);
  });
}

Deno.test("catalogue: requests for models without a price are counted, by model", async () => {
  using world = await worldWith(catalogued());
  for (const model of ["gpt-nine", "gpt-nine", "llama"]) await statusOf(world, model);
  await world.app.flush();
  const summary = `/v1/admin/projects/${world.projectId}/summary?from=2025-06-01&to=2026-06-01`;
  const { body } = await world.json(summary, { key: adminKey });
  assert.deepEqual(body.unpriced, [{ reason: "gpt-nine", count: 2 }, {
    reason: "llama",
    count: 1,
  }]);
  assert.equal(world.deps.metrics.unpricedCalls.value, 3);
});

Deno.test("catalogue: owners are notified of requests for models without a price", async () => {
  using world = await worldWith(catalogued());
  await subscribe(world, { events: ["proxy.request.blocked"] });
  for (let at = 0; at < 3; at++) await statusOf(world, "gpt-nine");
  await world.app.flush();
  await deliver(world);
  const seen = world.subscriber.received.map(({ body }) => body.event.data);
  assert.deepEqual(seen.map(({ reason, count }) => [reason, count]), [
    ["model_without_price", 1],
    ["model_without_price", 2],
  ]);
});
