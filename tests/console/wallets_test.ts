import assert from "node:assert/strict";
import { hiddenFields, signedIn, textOf } from "../support/console.ts";
import { allow, Device, env, pay } from "../support/wallets.ts";
import { adminKey, createWorld } from "../support/world.ts";

const path = "/console/wallets";
const reason = "Has lost the only device, and showed the receipt of the payment.";

Deno.test("console: an operator finds a user's wallets, and joins a lost one with the new one", async () => {
  using world = await createWorld({ env, project: { name: "Helper", mode: "shared" } });
  const lost = new Device(world);
  await allow(lost);
  await pay(world, { amount: "46" });
  await lost.post("/wallet", { action: "leave", confirmed: "yes" });
  await world.json("/v1/user/disconnect?user=ada", { method: "POST" });
  await world.clock.advance(1);
  const device = new Device(world);
  await allow(device);
  const operator = await signedIn(world, adminKey);
  assert.match((await operator.get("/console/projects")).html, /href="[^"]*\/console\/wallets"/);
  const { html } = await operator.get(`${path}?project=${world.projectId}&user=ada`);
  const ids = [...new Set(html.match(/per_[0-9A-Z]{26}/g))];
  assert.equal(ids.length, 2);
  const [into = "", from = ""] = ids;
  const shown = await operator.get(`${path}?wallet=${from}`);
  assert.match(textOf(shown.html), /\$46\.00.*0 devices, 0 passkeys, 0 e-mail addresses/);
  assert.ok(shown.html.includes(`${path}/join?from=${from}`));
  const page = await operator.get(`${path}/join?from=${from}`);
  assert.match(page.html, new RegExp(`name="from"[^>]*value="${from}"`));
  const refused = await operator.post(`${path}/join`, { from, into });
  assert.equal(refused.status, 400);
  assert.match(textOf(refused.html), /state the reason/);
  const asked = await operator.post(`${path}/join`, { from, into, "reasons.from": reason });
  assert.equal(asked.status, 303, asked.html);
  const state = await operator.get(asked.location ?? "");
  assert.match(textOf(state.html), /The owners are asked to confirm.*to be confirmed by the owner/);
  const withdraw = hiddenFields(state.html, `${path}/join`);
  assert.equal(withdraw.action, "withdraw");
  await device.post("/wallet", { action: "join", from });
  assert.match(textOf((await operator.get(`${path}?wallet=${from}`)).html), /joined/);
  assert.match((await device.get("/wallet")).html, /\$46\.00/);
  const trail = textOf((await operator.get("/console/audit")).html);
  assert.match(trail, /joined wallet per_\w+ into per_\w+, as both sides have agreed/);
});

Deno.test("console: wallets are the operator's page alone", async () => {
  using world = await createWorld({ env, project: { mode: "shared" } });
  const owner = await signedIn(world);
  assert.equal((await owner.get(path)).status, 404);
  assert.equal(
    (await owner.post(`${path}/join`, { from: "per_1", action: "withdraw" })).status,
    404,
  );
  const operator = await signedIn(world, adminKey);
  for (
    const query of [
      "",
      "?wallet=per_01K9Z0C8Q4R7T2V5X8Z1B3D5F7",
      "?wallet=x",
      "?project=pw_1&user=a",
    ]
  ) {
    const { status, html } = await operator.get(`${path}${query}`);
    assert.ok(status === 200 || status === 400, `${query}: ${status} ${html}`);
  }
});
