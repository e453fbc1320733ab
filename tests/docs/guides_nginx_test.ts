import assert from "node:assert/strict";
import { assertPassesAtOnce, startHeldUpstream } from "../support/held_upstream.ts";
import { startNginx } from "../support/nginx.ts";
import { makeFolder, serviceEnv, startFarebox } from "../support/process.ts";
import { caPath } from "../support/receiver.ts";
import { snippetOf } from "../support/snippets.ts";
import { findCommand, testWith } from "../support/toolchains.ts";
import { makeProject } from "../support/traffic.ts";
import { createWorld } from "../support/world.ts";

const nginx = await findCommand("nginx", "/usr/sbin");

testWith(
  nginx,
  "guides: nginx as configured passes each piece of a stream on at once, over TLS",
  async (path) => {
    await using folder = await makeFolder();
    await using upstream = startHeldUpstream();
    const env = { ...serviceEnv, UPSTREAM_URL: upstream.url };
    await using service = await startFarebox({ folder: folder.path, env });
    const key = await makeProject(service);
    await service.json("/v1/user/balance/deposit", { key, body: { user: "ada", amount: "1" } });
    const guide = await snippetOf("nginx", "nginx");
    const { host } = new URL(service.url);
    await using proxy = await startNginx(path, { guide, folder: folder.path, host });
    assert.match(await proxy.check(), /test is successful/);

    using client = Deno.createHttpClient({ caCerts: [await Deno.readTextFile(caPath)] });
    const messages = [{ role: "user", content: "Hello" }];
    const answer = await fetch(`${proxy.url}/v1/chat/completions`, {
      client,
      signal: AbortSignal.timeout(10_000),
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "test-model", user: "ada", stream: true, messages }),
    });
    await assertPassesAtOnce(answer, upstream);
  },
);

testWith(
  nginx,
  "guides: nginx as configured keeps operators' pages from strangers, limits them, and demands TLS",
  async (path) => {
    await using folder = await makeFolder();
    const env = { ...serviceEnv, METRICS_TOKEN: "a-token-of-the-metrics" };
    await using service = await startFarebox({ folder: folder.path, env });
    const guide = (await snippetOf("nginx", "nginx"))
      .replace("127.0.0.1 1;", "").replace("allow 127.0.0.1;", "");
    const { host } = new URL(service.url);
    await using proxy = await startNginx(path, { guide, folder: folder.path, host });
    using client = Deno.createHttpClient({ caCerts: [await Deno.readTextFile(caPath)] });
    const call = async (target: string) => {
      const response = await fetch(proxy.url + target, {
        client,
        headers: { authorization: `Bearer ${serviceEnv.ADMIN_KEY}` },
      });
      await response.body?.cancel();
      return response;
    };
    const health = await call("/healthz");
    assert.equal(health.status, 200);
    assert.match(health.headers.get("strict-transport-security") ?? "", /^max-age=\d{8}/);
    const operators = ["/console", "/console/projects", "/metrics", "/v1/admin/projects"];
    for (const target of [...operators, "/v1/%61dmin/projects", "/v1//admin/projects"]) {
      assert.equal((await call(target)).status, 403, target);
    }
    const statuses = new Set<number>();
    for (let n = 0; n < 40; n++) statuses.add((await call("/t/none")).status);
    assert.ok(statuses.has(429), `${[...statuses]}`);
  },
);

/** The first segments of the paths that a location of a configuration names. */
function namedIn(config: string, containing: string): string[] {
  const locations = [...config.matchAll(/location ~ \^\/\(([^)]+)\)\(\/\|\$\) \{([^]*?)\n {2}\}/g)];
  const [, names = ""] = locations.find(([, , rules]) => rules?.includes(containing)) ?? [];
  return names.split("|").sort();
}

Deno.test("guides: nginx limits the pages that need no key, and protects those of operators, of today", async () => {
  using world = await createWorld({ env: { METRICS_TOKEN: "a-token-of-the-metrics" } });
  const routes = Object.entries(world.app.routes);
  const first = (path: string) => path.split("/")[1] ?? "";
  const forPayers = routes.filter(([, { strangers }]) =>
    strangers === "topUps" || strangers === "wallets"
  ).map(([path]) => first(path));
  const forOperators = routes.map(([path]) =>
    /^\/(console|metrics|v1\/admin)(?=\/|$)/.exec(path)?.[1]
  )
    .filter((name) => name !== undefined);
  const guide = await snippetOf("nginx", "nginx");
  assert.deepEqual(namedIn(guide, "farebox_pages"), [...new Set(forPayers)].sort());
  const example = await Deno.readTextFile(new URL("../../examples/nginx.conf", import.meta.url));
  for (const config of [guide, example]) {
    assert.deepEqual(namedIn(config, "deny all"), [...new Set(forOperators)].sort());
  }
});

Deno.test("guides: every path of the service that they name is one that it serves", async () => {
  using world = await createWorld({ env: { METRICS_TOKEN: "a-token-of-the-metrics" } });
  const routes = Object.keys(world.app.routes);
  const patterns = routes.map((route) =>
    new RegExp(`^${route.replace(/:\w+|\*/g, "[^?]+").replaceAll(".", "\\.")}$`)
  );
  const isServed = (path: string) =>
    patterns.some((pattern) => pattern.test(path)) ||
    routes.some((route) => route.startsWith(path.endsWith("/") ? path : `${path}/`));
  const ofMachines = /^\/(app|data|etc|usr|var)(\/|$)/;
  const unknown: string[] = [];
  for await (const { name } of Deno.readDir(new URL("../../guides", import.meta.url))) {
    const text = await Deno.readTextFile(new URL(`../../guides/${name}`, import.meta.url));
    for (const [, path = ""] of text.matchAll(/`(?:[A-Z]+ )?(\/[a-z][^\s`]*)`/g)) {
      const asked = path.replace(/[?#].*$/, "");
      // Endpoints are also named by what follows the version.
      const isKnown = ofMachines.test(asked) || isServed(asked) || isServed(`/v1${asked}`);
      if (!isKnown) unknown.push(`${name}: ${path}`);
    }
  }
  assert.deepEqual(unknown, []);
});
