import assert from "node:assert/strict";
import { readConfig } from "../../src/config/config.ts";
import { providers } from "../../src/projects/providers.ts";
import { readInstanceUpstreams } from "../../src/projects/instance_upstreams.ts";
import { snippetsOf } from "../support/snippets.ts";
import { operate } from "../support/webhooks.ts";
import { createWorld } from "../support/world.ts";

Deno.test("guides: the settings of routes are accepted as they stand", async () => {
  using world = await createWorld();
  const snippets = await snippetsOf("routing");
  const [patch, ...more] = snippets.filter(({ mark }) => mark === "routing");
  const [instance, ...others] = snippets.filter(({ language }) => language === "json");
  assert.deepEqual([more, others], [[], []]);
  const json = /-d '([^']+)'/.exec(patch?.code ?? "")?.[1] ?? "";
  const body = JSON.parse(json.replaceAll("…", "1"));
  assert.equal((await operate(world, "", { method: "PATCH", body })).status, 200);
  const environment = { UPSTREAMS_FILE: "upstreams.json", OPENAI_API_KEY: "its-key" };
  const readFile = () => instance?.code ?? "";
  const config = readConfig(environment, { dev: true, readFile });
  const { upstreams, routes } = readInstanceUpstreams(config);
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
