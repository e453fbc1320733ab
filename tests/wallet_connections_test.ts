import assert from "node:assert/strict";
import { allow, charge, Device, sharedWorld } from "./support/wallets.ts";

Deno.test("wallet: every permission is seen and can be ended, however many there are", async () => {
  using world = await sharedWorld();
  const [device, other] = [new Device(world), new Device(world)];
  const users = Array.from({ length: 103 }, (_, n) => `u${n + 100}`);
  for (const user of users) await allow(device, { user });
  // What others have taken over since takes no place.
  await world.clock.advance(1);
  for (const user of users.slice(0, 2)) {
    await world.json(`/v1/user/disconnect?user=${user}`, { method: "POST" });
    await world.clock.advance(1);
    await allow(other, { user });
  }
  const { html } = await device.get("/wallet");
  const shown = [...html.matchAll(/name="user" value="([^"]+)"/g)].map(([, user]) => user);
  assert.deepEqual(shown, users.slice(2));
  const last = { action: "revoke", projectId: world.projectId, user: users.at(-1) ?? "" };
  assert.equal((await device.post("/wallet", last)).status, 303);
  assert.equal((await charge(world, "1", { user: last.user })).reason, "authorization_required");
});
