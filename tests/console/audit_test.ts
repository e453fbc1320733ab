import assert from "node:assert/strict";
import { auditActions, auditRow, byOperator } from "../../src/projects/audit.ts";
import { signedIn } from "../support/console.ts";
import { put } from "../support/verify.ts";
import { operate } from "../support/webhooks.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

async function record(world: World, action: typeof auditActions[number], target = "x") {
  const by = byOperator("api", "203.0.113.7");
  const { key, value } = auditRow(world.deps, world.projectId, {
    ...{ by, action, target, detail: { name: 'till, "main"', suffix: "ab12" } },
  });
  await put(world, key, value);
}

const rowsIn = (html: string) => html.match(/data-label="What"/g)?.length ?? 0;

Deno.test("audit: the page filters by action and actor, page by page, and as CSV", async () => {
  using world = await createWorld();
  for (let n = 0; n < 60; n++) await record(world, "key.revoked", `key_${n}`);
  const owner = await signedIn(world);
  const first = await owner.get("audit?action=key.revoked&actor=operator");
  assert.equal(rowsIn(first.html), 50);
  const [, next = ""] = /href="([^"]*cursor=[^"]*)" rel="next"/.exec(first.html) ?? [];
  const second = await owner.get(next.replaceAll("&amp;", "&"));
  assert.equal(rowsIn(second.html), 10);
  assert.doesNotMatch(second.html, /rel="next"/);
  assert.equal(rowsIn((await owner.get("audit?action=console.signed_in")).html), 1);
  assert.equal(rowsIn((await owner.get("audit?actor=key_nobody")).html), 0);
  const csv = (await owner.get("audit.csv?action=key.revoked")).html.trim().split("\r\n");
  assert.equal(csv.length, 62);
  assert.equal(csv.at(-1), "total,60 rows");
  assert.match(csv[1] ?? "", /^aud_\w+,[^,]+,key\.revoked,key_59,operator,,api,203\.0\.113\.7,"\{/);
  assert.equal((await owner.get("audit?action=key.painted")).status, 400);
  assert.equal((await owner.get("/console/audit.csv")).status, 404, "only the operator");
});

Deno.test("audit: the API filters too, and a page that found nothing leads on", async () => {
  using world = await createWorld();
  await record(world, "refund", "wanted");
  for (let n = 0; n < 2_100; n++) await record(world, "deposit");
  const read = async (query: string): Promise<Body> =>
    (await operate(world, `/audit?${query}`, { method: "GET" })).body;
  const page = await read("action=refund");
  assert.deepEqual(page.actions, []);
  const rest = await read(`action=refund&cursor=${page.nextCursor}`);
  assert.deepEqual(rest.actions.map(({ target }: Body) => target), ["wanted"]);
  assert.equal(rest.nextCursor, null);
  assert.equal((await read("actor=operator&limit=7")).actions.length, 7);
  assert.equal((await read("action=gift")).error.param, "action");
  const instance = await world.json("/v1/admin/audit?action=project.created", { key: adminKey });
  assert.equal(instance.body.actions.length, 1);
});
