import assert from "node:assert/strict";
import { updateProjectSchema } from "../src/projects/schema.ts";
import { adminKey, type Body, createWorld } from "./support/world.ts";

Deno.test("projects: every setting that a change may give is kept, and no other moves", async () => {
  using world = await createWorld();
  const path = `/v1/admin/projects/${world.projectId}`;
  const read = async (): Promise<Body> => (await world.json(path, { key: adminKey })).body.project;
  const models = { "other-model": { input: "3", output: "4" } };
  const changes: Body = {
    name: "Renamed",
    ownerUserId: "owner-2",
    topUpUrl: "https://my.app/topup",
    userSource: "header",
    maxOutputTokens: 77,
    allowedFields: ["plugins"],
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
