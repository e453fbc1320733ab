import assert from "node:assert/strict";
import { signedIn, textOf, Visitor } from "../support/console.ts";
import { adminKey, createWorld } from "../support/world.ts";

Deno.test("console: an operator creates a project with prices, upstream and Stripe, and gets a request to paste", async () => {
  using world = await createWorld();
  const operator = new Visitor(world);
  await operator.signIn(adminKey);
  const { html } = await operator.get("/console/projects/new");
  const formId = /name="formId" value="([^"]+)"/.exec(html)?.[1] ?? "";
  const form = {
    formId,
    name: "Poem shop",
    currency: "EUR",
    mode: "default",
    catalogue: "on",
    markupPercent: "25",
    upstreamUrl: "https://models.example.com/v1",
    upstreamKey: "key-of-the-upstream",
    stripeKey: "sk_test_of_the_shop",
    stripeWebhook: "whsec_of_the_shop",
  };
  const bad = await operator.post("/console/projects/new", { ...form, currency: "coins" });
  assert.equal(bad.status, 400);
  assert.match(textOf(bad.html), /Currency/);
  const made = await operator.post("/console/projects/new", form);
  assert.equal(made.status, 200, textOf(made.html));
  const text = textOf(made.html);
  const [, key = ""] = /Bearer (sk_\w+)/.exec(text) ?? [];
  const models = await world.json("/v1/models", { key });
  assert.equal(models.status, 200);
  assert.doesNotMatch(made.html, /key-of-the-upstream|sk_test_of_the_shop/);
  const again = await operator.post("/console/projects/new", form);
  assert.equal(again.status, 303, "a form that is sent twice creates one project");
  const { body } = await world.json("/v1/admin/projects", { key: adminKey });
  assert.equal(body.projects.length, 2);
  assert.partialDeepStrictEqual(body.projects.at(-1), {
    name: "Poem shop",
    currency: "eur",
    pricing: { catalogue: true, markupPercent: "25" },
    stripe: { secretKey: { set: true } },
  });
});

Deno.test("console: owners cannot create projects", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  assert.equal((await owner.get("/console/projects/new")).status, 404);
  assert.equal((await owner.post("/console/projects/new", { name: "Mine" })).status, 404);
});
