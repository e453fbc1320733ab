import assert from "node:assert/strict";
import { signedIn, textOf } from "../support/console.ts";
import { adminKey, createWorld } from "../support/world.ts";

Deno.test("projects: they are paged, and found by a part of the name", async () => {
  using world = await createWorld();
  for (let n = 0; n < 24; n++) {
    const body = { name: n % 8 === 0 ? `Shop ${n}` : `App ${n}` };
    await world.json("/v1/admin/projects", { key: adminKey, body });
  }
  const operator = await signedIn(world, adminKey);
  const first = (await operator.get("/console/projects")).html;
  const [, next = ""] = /href="([^"]*cursor=[^"]*)" rel="next"/.exec(first) ?? [];
  const namesIn = (html: string) => html.match(/<th scope="row">/g)?.length;
  assert.equal(namesIn(first), 20);
  assert.equal(namesIn((await operator.get(next.replaceAll("&amp;", "&"))).html), 5);
  const found = (await operator.get("/console/projects?name=shop")).html;
  assert.equal(namesIn(found), 3);
  assert.match(textOf(found), /Shop 0 .*Shop 8 .*Shop 16/);
  const none = textOf((await operator.get("/console/projects?name=zz")).html);
  assert.match(none, /No project has such a name/);
});
