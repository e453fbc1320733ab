import assert from "node:assert/strict";
import { message, upstreamResponse } from "../../support/responses.ts";
import { createWorld } from "../../support/world.ts";

for (const length of [256, 429, 4096]) {
  Deno.test(`responses: ids of ${length} characters are remembered, the response's and its items'`, async () => {
    using world = await createWorld();
    await world.deposit("ada", "1");
    const id = "resp_".padEnd(length, "x");
    const item = "msg_".padEnd(length, "y");
    world.upstream.reply(() =>
      Response.json(upstreamResponse({ id, output: [message("Hi", { id: item })] }))
    );
    const ask = (fields: Record<string, unknown>, user = "ada") =>
      world.json("/v1/responses", { body: { model: "test-model", input: "Hi", user, ...fields } });
    assert.equal((await ask({})).body.id, id);
    assert.equal((await ask({ previous_response_id: id })).status, 200);
    assert.equal((await ask({ input: [{ type: "item_reference", id: item }] })).status, 200);
    const { status, body } = await ask({ previous_response_id: id }, "eve");
    assert.deepEqual([status, body.error.code], [400, "previous_response_not_found"]);
  });
}

Deno.test("responses: an id that is too long to be remembered is refused by its length", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const body = { model: "test-model", input: "Hi", user: "ada" };
  const previous_response_id = "resp_".padEnd(4097, "x");
  const refused = await world.json("/v1/responses", { body: { ...body, previous_response_id } });
  assert.equal(refused.status, 400);
  assert.match(refused.body.error.message, /4096 characters/);
});
