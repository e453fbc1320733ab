import assert from "node:assert/strict";
import { readConfig } from "../../src/config.ts";
import { providers } from "../../src/projects/providers.ts";
import { readInstanceUpstreams } from "../../src/projects/instance_upstreams.ts";
import { snippetsOf } from "../support/snippets.ts";
import { operate } from "../support/webhooks.ts";
import { createWorld } from "../support/world.ts";

Deno.test("guides: the settings of routes are accepted as they stand", async () => {
  using world = await createWorld();
  const [patch, instance, ...more] = (await snippetsOf("routing"))
    .filter(({ mark }) => mark === "routing");
  assert.deepEqual(more, []);
  const json = /-d '([^']+)'/.exec(patch?.code ?? "")?.[1] ?? "";
  const body = JSON.parse(json.replaceAll("…", "1"));
  assert.equal((await operate(world, "", { method: "PATCH", body })).status, 200);
  const line = instance?.code.trim().replaceAll("...", "1") ?? "";
  const UPSTREAMS = line.replace("UPSTREAMS=", "");
  const { upstreams, routes } = readInstanceUpstreams(readConfig({ UPSTREAMS }, { dev: true }));
  assert.deepEqual([Object.keys(upstreams), Object.keys(routes)], [["main"], ["*"]]);
});

Deno.test("guides: the settings of the response cache are accepted as they stand", async () => {
  using world = await createWorld();
  const [settings] = await snippetsOf("response-cache");
  const body = JSON.parse(settings?.code ?? "");
  assert.equal((await operate(world, "", { method: "PATCH", body })).status, 200);
});

Deno.test("guides: every prepared provider is named", async () => {
  const text = await Deno.readTextFile(new URL("../../guides/routing.md", import.meta.url));
  for (const name of Object.keys(providers)) assert.ok(text.includes(`\`${name}\``), name);
});
