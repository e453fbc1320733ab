import assert from "node:assert/strict";
import { whileMoving } from "../support/books.ts";
import { storedRows } from "../support/books.ts";
import { deliver, operate, subscribe, subscriptionsPath } from "../support/webhooks.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

async function trail(world: World, query = ""): Promise<Body> {
  const path = `/v1/admin/projects/${world.projectId}/audit${query}`;
  const { status, body } = await world.json(path, { key: adminKey });
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

const byOperator = { actor: { type: "operator", id: "operator" }, via: "api" };

Deno.test("audit: every change by an operator has its row, newest first, with the actor", async () => {
  using world = await createWorld();
  const { projectId } = world;
  await operate(world, "", { method: "PATCH", body: { name: "Shop", trialCredits: "1" } });
  const { body: { key } } = await operate(world, "/keys", { body: { name: "till" } });
  await operate(world, `/keys/${key.id}`, { method: "DELETE" });
  const subscription = await subscribe(world);
  const path = `/subscriptions/${subscription.id}`;
  await world.json(`${subscriptionsPath}/${subscription.id}`, { method: "DELETE" });
  const wish = { isActive: true, rotateSecret: true };
  const rotated = await operate(world, path, { method: "PATCH", body: wish });
  world.subscriber.reply(() => ({ status: 410 }));
  await world.deposit("ada", "5");
  await deliver(world);
  const [failed] = (await world.json("/v1/webhooks/logs?status=error")).body.logs;
  await operate(world, `/deliveries/${failed.id}/redeliver`);
  const since = "2025-12-31T00:00:00Z";
  const { body: { redelivery } } = await operate(world, `${path}/redeliver`, { body: { since } });
  await operate(world, "/archive");

  const { actions, nextCursor } = await trail(world);
  assert.equal(nextCursor, null);
  const [, , keyRow] = (await operate(world, "/keys", { method: "GET" })).body.keys;
  const own = (await operate(world, "/keys", { method: "GET" })).body.keys[0];
  const byKey = { actor: { type: "key", id: own.id, suffix: own.suffix }, via: "api" };
  const { url } = subscription;
  const secretSuffix = rotated.body.subscription.secret.slice(-6);
  const { id: subscriptionId } = subscription;
  const expected = [
    ["project.archived", projectId, byOperator, {}],
    ["webhook.redelivered", subscriptionId, byOperator, {
      jobId: redelivery.id,
      since: "2025-12-31T00:00:00.000Z",
    }],
    ["delivery.redelivered", failed.id, byOperator, {
      subscriptionId,
      eventType: "balance.deposit.created",
    }],
    ["webhook.rotated", subscriptionId, byOperator, { url, secretSuffix }],
    ["webhook.reenabled", subscriptionId, byOperator, { url, secretSuffix }],
    ["webhook.deactivated", subscriptionId, byKey, {
      url,
      secretSuffix: subscription.secretSuffix,
    }],
    ["webhook.created", subscriptionId, byKey, { url, events: ["*"] }],
    ["key.revoked", key.id, byOperator, { name: "till", suffix: keyRow.suffix }],
    ["key.created", key.id, byOperator, {
      name: "till",
      suffix: keyRow.suffix,
      scopes: ["chat", "money", "webhooks"],
    }],
    ["project.updated", projectId, byOperator, {
      fields: ["name", "trialCredits"],
      name: { from: "Test", to: "Shop" },
      trialCredits: { from: "0", to: "1" },
    }],
    ["project.created", projectId, byOperator, { name: "Test", mode: "default", currency: "usd" }],
  ];
  const shown = actions.map((
    { action, target, actor, via, detail }: Body,
  ) => [action, target, { actor, via }, detail]);
  assert.deepEqual(shown, expected);
  for (const { id, at } of actions) {
    assert.match(id, /^aud_[0-9A-Z]{26}$/);
    assert.equal(at, new Date(world.clock.now()).toISOString());
  }
});

Deno.test("audit: what changes nothing leaves no row, and neither does a refusal", async () => {
  using world = await createWorld();
  const { body: { key } } = await operate(world, "/keys", { body: {} });
  const subscription = await subscribe(world);
  for (let turn = 0; turn < 2; turn++) {
    await operate(world, `/keys/${key.id}`, { method: "DELETE" });
    await world.json(`${subscriptionsPath}/${subscription.id}`, { method: "DELETE" });
    await operate(world, "/archive");
  }
  await operate(world, "", { method: "PATCH", body: { name: "" } });
  await operate(world, "", { method: "PATCH", body: {} });
  await operate(world, "/keys/key_00000000000000000000000000", { method: "DELETE" });
  const actions = (await trail(world)).actions.map(({ action }: Body) => action);
  assert.deepEqual(actions, [
    "project.archived",
    "webhook.deactivated",
    "key.revoked",
    "webhook.created",
    "key.created",
    "project.created",
  ]);
});

Deno.test("audit: it never contains a secret", async () => {
  using world = await createWorld();
  const secrets = ["upstream-key-of-this-project", "sk_test_very_secret", "whsec_very_secret_too"];
  const [apiKey, secretKey, webhookSecret] = secrets;
  const body = {
    upstream: { url: "https://models.example.com/v1", apiKey },
    stripe: { secretKey, webhookSecret },
    messages: { en: { insufficient_funds: `${"x".repeat(900)} {{url}}` } },
  };
  await operate(world, "", { method: "PATCH", body });
  const made = await operate(world, "/keys", { body: {} });
  const subscription = await subscribe(world, { secret: "a-secret-of-my-own" });
  const rows = (await storedRows(world)).filter(({ key }) => key[0] === "audit");
  const text = rows.map(({ value }) => new TextDecoder().decode(value ?? undefined)).join();
  for (const secret of [...secrets, made.body.apiKey, subscription.secret, world.apiKey]) {
    assert.ok(!text.includes(secret), secret);
  }
  const updated = (await trail(world)).actions.find(({ action }: Body) =>
    action === "project.updated"
  );
  assert.deepEqual(updated.detail.fields.toSorted(), ["messages", "stripe", "upstream"]);
});

Deno.test("audit: it is read in pages without gaps or repeats, also while rows are added", async () => {
  using world = await createWorld();
  for (let n = 0; n < 7; n++) await operate(world, "/keys", { body: { name: `k${n}` } });
  const seen: string[] = [];
  let cursor: string | null = "";
  while (cursor !== null) {
    const page: Body = await trail(world, `?limit=3${cursor && `&cursor=${cursor}`}`);
    seen.push(...page.actions.map(({ detail }: Body) => detail.name));
    await operate(world, "/keys", { body: { name: "later" } });
    cursor = page.nextCursor;
  }
  assert.deepEqual(seen, ["k6", "k5", "k4", "k3", "k2", "k1", "k0", "Test"]);
  const whole = (await trail(world)).actions.length;
  assert.equal((await trail(world, `?limit=${whole}`)).nextCursor, null, "no page is empty");
  for (const bad of ["x", "aud_1", "key_00000000000000000000000000"]) {
    const path = `/v1/admin/projects/${world.projectId}/audit?cursor=${bad}`;
    assert.equal((await world.json(path, { key: adminKey })).status, 400, bad);
  }
});

Deno.test("audit: projects have their own trails, the instance has one, and keys open neither", async () => {
  using world = await createWorld();
  const { projectId: other } = await world.makeProject({ name: "Other" });
  assert.deepEqual((await trail(world)).actions.length, 1);
  const instance = await world.json("/v1/admin/audit?limit=1", { key: adminKey });
  assert.deepEqual(instance.body.actions.map(({ target }: Body) => target), [other]);
  const rest = await world.json(`/v1/admin/audit?cursor=${instance.body.nextCursor}`, {
    key: adminKey,
  });
  assert.deepEqual(rest.body.actions.map(({ target }: Body) => target), [world.projectId]);
  for (const path of ["/v1/admin/audit", `/v1/admin/projects/${world.projectId}/audit`]) {
    assert.equal((await world.json(path)).status, 401, path);
  }
  const unknown = "/v1/admin/projects/pw_00000000000000000000000000/audit";
  assert.equal((await world.json(unknown, { key: adminKey })).status, 404);
});

Deno.test("audit: an action whose write does not land leaves no row either", async () => {
  let broken = false;
  using world = await createWorld({
    wrapKv: (kv) => ({
      ...kv,
      async atomic(write) {
        if (broken && write.sets.some(({ key }) => key[0] === "audit")) return null;
        return await kv.atomic(write);
      },
    }),
  });
  broken = true;
  const refused = await whileMoving(world.clock, operate(world, "/archive"), { stepMs: 500 });
  assert.equal(refused.status, 503);
  broken = false;
  assert.equal((await operate(world, "", { method: "GET" })).body.project.status, "active");
  assert.deepEqual((await trail(world)).actions.length, 1);
});

Deno.test("audit: an operator's money operations by the API have rows, a project's own key none", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const users = "/users/ada";
  const deposit = await operate(world, `${users}/deposit`, { body: { amount: "5" } });
  const charge = await operate(world, `${users}/charge`, { body: { amount: "2" } });
  const { activityId } = charge.body;
  const refund = await operate(world, `${users}/refund`, { body: { activityId, amount: "0.5" } });
  await operate(world, `${users}/charge`, { body: { amount: "900" } });
  const { actions } = await trail(world);
  const shown = actions.slice(0, -1).map((
    { action, target, detail, actor }: Body,
  ) => [action, target, actor.type, detail]);
  assert.deepEqual(shown, [
    ["refund", "ada", "operator", {
      activityId: refund.body.activityId,
      amount: "0.5",
      refundedActivityId: activityId,
    }],
    ["charge", "ada", "operator", { activityId, amount: "2" }],
    ["deposit", "ada", "operator", { activityId: deposit.body.activityId, amount: "5" }],
  ]);
});

Deno.test("audit: an erased user is named by no row, and the erasure has one", async () => {
  using world = await createWorld();
  await operate(world, "/users/ada/deposit", { body: { amount: "5" } });
  const forgotten = await operate(world, "/users/ada/forget", { body: { forfeit: true } });
  const { status, pseudonym } = forgotten.body;
  assert.equal(status, "done");
  const { actions } = await trail(world);
  assert.deepEqual(
    actions.map(({ action, target }: Body) => [action, target]).slice(0, 2),
    [["user.forgotten", pseudonym], ["deposit", pseudonym]],
  );
  const rows = (await storedRows(world)).filter(({ key }) => key[0] === "audit");
  assert.doesNotMatch(
    rows.map(({ value }) => new TextDecoder().decode(value ?? undefined)).join(),
    /ada/,
  );
});
