import assert from "node:assert/strict";
import { operate } from "../support/webhooks.ts";
import { signedIn, textOf } from "../support/console.ts";
import { adminKey, createWorld, type World } from "../support/world.ts";

const secretKey = "sk_test_of_the_owner";

const connect = (world: World, key = secretKey) =>
  operate(world, "/stripe/connect", { body: { secretKey: key } });

Deno.test("connect stripe: the key alone makes the webhook, whose secret is stored", async () => {
  using world = await createWorld();
  world.stripe.endpoints.push({ id: "we_other", url: "https://other.test/hook" });
  const { status, body } = await connect(world);
  const webhookUrl = `https://farebox.test/v1/stripe/${world.projectId}`;
  assert.deepEqual([status, body], [200, { connected: true, webhookUrl }]);
  const [other, made] = world.stripe.endpoints;
  assert.equal(other?.id, "we_other");
  assert.equal(made?.url, webhookUrl);
  assert.ok(made?.events.includes("charge.dispute.funds_reinstated"));
  const project = await operate(world, "", { method: "GET" });
  assert.deepEqual(project.body.project.stripe, {
    secretKey: { set: true },
    webhookSecret: { set: true },
  });
  // Again: the former webhook of this project goes, and no other.
  await connect(world);
  assert.deepEqual(world.stripe.endpoints.map(({ id }) => id), ["we_other", "we_2"]);
});

Deno.test("connect stripe: a wrong key changes nothing, and says what Stripe says", async () => {
  using world = await createWorld();
  const wrong = await connect(world, "sk_test_of_nobody");
  assert.deepEqual([wrong.status, wrong.body.error.code], [400, "stripe_refused"]);
  assert.equal((await connect(world, "pk_live_public")).body.error.param, "secretKey");
  world.stripe.failsWith = 503;
  const away = await connect(world);
  assert.deepEqual([away.status, away.body.error.code], [502, "stripe_unavailable"]);
  const project = await operate(world, "", { method: "GET" });
  assert.equal(project.body.project.stripe, null);
  assert.deepEqual(world.stripe.endpoints, []);
});

Deno.test("connect stripe: in the shared mode there is nothing to connect", async () => {
  using world = await createWorld({ project: { mode: "shared" } });
  assert.equal((await connect(world)).body.error.code, "mode_conflict");
});

Deno.test("console: an owner connects Stripe with the key, after entering their own again", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  assert.match(textOf((await owner.get("payments")).html), /Users cannot pay/);
  const refused = await owner.post("payments", { secretKey: "sk_test_of_nobody" });
  assert.match(textOf(refused.html), /Stripe refuses/);
  await owner.submit("payments", { secretKey });
  const { html } = await owner.get("payments");
  assert.match(textOf(html), /Stripe is connected/);
  assert.ok(!html.includes(secretKey));
});

Deno.test("console: a new project with a Stripe key alone is connected at once", async () => {
  using world = await createWorld();
  const { Visitor } = await import("../support/console.ts");
  const operator = new Visitor(world);
  await operator.signIn(adminKey);
  for (const [key, told] of [[secretKey, false], ["sk_test_of_nobody", true]] as const) {
    const { html } = await operator.get("/console/projects/new");
    const formId = /name="formId" value="([^"]+)"/.exec(html)?.[1] ?? "";
    const form = { formId, name: "Shop", currency: "usd", catalogue: "on", stripeKey: key };
    const made = await operator.post("/console/projects/new", form);
    assert.equal(made.status, 200);
    assert.equal(/Stripe is not connected/.test(textOf(made.html)), told);
  }
  const { body } = await world.json("/v1/admin/projects", { key: adminKey });
  const states = body.projects.slice(1).map(({ stripe }: { stripe: unknown }) => stripe !== null);
  assert.deepEqual(states, [true, false]);
});
