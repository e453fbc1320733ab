import assert from "node:assert/strict";
import { createWorld } from "./support/world.ts";

Deno.test("connect: in the default mode every user is connected, and nothing is written", async () => {
  using world = await createWorld();
  const { status, body } = await world.json("/v1/user/connect?user=ada");
  assert.equal(status, 200);
  assert.deepEqual([body.connected, body.connectedUser, typeof body.message], [
    true,
    "ada",
    "string",
  ]);
  assert.deepEqual(await world.activities("ada"), []);
  assert.equal((await world.json("/v1/user/connect")).body.error.code, "user_required");
  assert.equal((await world.json("/v1/user/connect?user=ada", { key: null })).status, 401);
});

Deno.test("connect: in the default mode there is nothing to disconnect", async () => {
  using world = await createWorld();
  for (const method of ["GET", "POST"]) {
    const { status, body } = await world.json("/v1/user/disconnect?user=ada", { method });
    assert.deepEqual([status, body.error.code], [400, "mode_conflict"]);
  }
});
