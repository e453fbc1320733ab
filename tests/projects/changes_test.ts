import assert from "node:assert/strict";
import { updateProjectSchema } from "../../src/projects/schema.ts";
import { createScriptedStore } from "../support/store.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

const change = (world: World, projectId: string, body: Body) =>
  world.json(`/v1/admin/projects/${projectId}`, { method: "PATCH", key: adminKey, body });

Deno.test("projects: every setting of a change is kept, and no other changes", async () => {
  const stripe = { secretKey: "sk_test_of_the_owner", webhookSecret: "whsec_of_the_owner" };
  using world = await createWorld({ project: { stripe } });
  const path = `/v1/admin/projects/${world.projectId}`;
  const read = async (): Promise<Body> => (await world.json(path, { key: adminKey })).body.project;
  const models = { "other-model": { input: "3", output: "4" } };
  const changes: Body = {
    name: "Renamed",
    ownerUserId: "owner-2",
    topUpUrl: "https://my.app/topup",
    userSource: "header",
    userHeader: "X-OpenWebUI-User-Id",
    maxOutputTokens: 77,
    allowedFields: ["plugins"],
    unknownFields: "pass",
    billingEvents: false,
    messages: { en: { busy: "Wait. {{url}}" } },
    topUp: { amounts: ["3"], min: "2", max: "4", checkoutUrl: "https://my.app/pay" },
    trialCredits: "1.5",
    lowBalance: "0.5",
    limits: {
      user: { requestsPerMinute: 9 },
      key: { concurrent: 8 },
      reply: "message",
    },
    // Routes lead to these.
    upstreams: { main: { url: "https://one.test/v1" }, spare: { provider: "openrouter" } },
    routes: { smart: { strategy: "order", targets: [{ upstream: "main", model: "a" }] } },
    responseCache: { enabled: true, maxAgeSeconds: 60, costFactor: "0.25", scope: "project" },
    requestLogDays: 7,
    keepResponses: "off",
    paywallOnJson: "402",
    brand: { accent: "#aa0055", logoUrl: "https://my.app/logo.png" },
    alerts: { emails: ["owner@my.app"], errorRate: { percent: 5 } },
    pricing: { catalogue: true, markupPercent: "5", requestFee: "0.01", models },
  };
  const settable = Object.keys(updateProjectSchema.shape)
    .filter((name) => name !== "upstream" && name !== "stripe");
  assert.deepEqual(Object.keys(changes).toSorted(), settable.toSorted());
  for (const [name, value] of Object.entries(changes)) {
    const before = await read();
    const { status, body } = await world.json(path, {
      method: "PATCH",
      key: adminKey,
      body: { [name]: value },
    });
    assert.equal(status, 200, JSON.stringify(body));
    const { [name]: changed, updatedAt: _, ...others } = await read();
    assert.partialDeepStrictEqual(changed, value, name);
    const { [name]: was, updatedAt: __, ...othersBefore } = before;
    assert.notDeepEqual(changed, was, name);
    assert.deepEqual(others, othersBefore, name);
  }
});

Deno.test("projects: of two concurrent changes, in one process or two, both are kept", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  using other = await createWorld({ shareWith: world, seed: 2 });
  const { projectId } = world;
  // Both have just read it.
  for (const one of [world, other]) await change(one, projectId, { name: "Same" });
  assert.equal((await change(world, projectId, { name: "One" })).status, 200);
  assert.equal((await change(other, projectId, { trialCredits: "2" })).status, 200);
  store.atomic = async (write, real) => {
    store.atomic = null;
    assert.equal((await change(other, projectId, { ownerUserId: "Two" })).status, 200);
    return await real(write);
  };
  const { status, body } = await change(world, projectId, { lowBalance: "3" });
  const { name, trialCredits, ownerUserId, lowBalance } = body.project;
  assert.deepEqual([status, name, trialCredits, ownerUserId, lowBalance], [
    200,
    "One",
    "2",
    "Two",
    "3",
  ]);
});

Deno.test("projects: no change exceeds what a record can hold, in any script", async () => {
  using world = await createWorld();
  const pricing = (n: number, letter: string) => ({
    models: Object.fromEntries(
      Array.from({ length: n }, (_, at) => [`model-${at}`, {
        input: "1",
        output: "1",
        description: letter.repeat(400),
      }]),
    ),
  });
  for (const letter of ["d", "\u00e9", "\u20ac"]) {
    const bytes = new TextEncoder().encode(letter).length;
    await change(world, world.projectId, { pricing: { models: null } });
    const most = Math.floor(57_000 / (400 * bytes + 60));
    const fits = await change(world, world.projectId, { pricing: pricing(most, letter) });
    assert.equal(fits.status, 200, `${bytes}`);
    const { status, body } = await change(world, world.projectId, {
      pricing: pricing(Math.ceil(most * 1.15), letter),
    });
    assert.deepEqual([status, body.error?.param], [400, "pricing"], `${bytes}`);
  }
});

Deno.test("projects: a change is visible on this process's pages at once", async () => {
  using world = await createWorld();
  const { body } = await world.json("/v1/user/balance/topup?user=ada");
  const title = async () => {
    const page = await (await world.call(new URL(body.url).pathname, { key: null })).text();
    return /<p class="name"><bdi>(.*?)<\/bdi>/.exec(page)?.[1];
  };
  await title();
  await change(world, world.projectId, { name: "Renamed" });
  assert.equal(await title(), "Renamed");
});
