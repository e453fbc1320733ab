import assert from "node:assert/strict";
import { Validator } from "@seriousme/openapi-schema-validator";
import { createApp } from "../../src/app.ts";
import { openApiPath } from "../../src/docs/document.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { apiDoc } from "../../src/api_doc.ts";
import { apiDocument, at, faultsOf, resolved, validatorAt } from "../support/api_document.ts";
import { adminKey, type Body, createWorld } from "../support/world.ts";

/** Pages for people, and what their scripts call, are not part of the API. */
const pages = [
  "/",
  "/t/:token",
  "/a/:token",
  "/topup/:token",
  "/authorize/:token",
  "/alerts/confirm/:token",
  "/wallet",
  "/wallet/email",
  "/wallet/mail/:token",
  "/wallet/passkeys/options",
  "/wallet/passkeys",
  "/wallet/sign-in/options",
  "/wallet/sign-in",
  "/assets/:name",
  "/docs",
  "/docs/api/:page",
  "/docs/search",
  "/docs/guides",
  "/docs/guides/:name",
];

Deno.test("openapi: the document is valid OpenAPI 3.1", async () => {
  const { valid, errors } = await new Validator().validate(structuredClone(apiDocument().document));
  assert.ok(valid, JSON.stringify(errors));
});

Deno.test("openapi: every path that machines call is documented, and no other", async () => {
  using world = await createWorld();
  const known = (all: Record<string, object>) =>
    Object.entries(all).flatMap(([address, methods]) =>
      Object.keys(methods).filter((name) => /^[A-Z]+$/.test(name))
        .map((method) => `${method} ${address}`)
    ).sort();
  const { routes } = world.app;
  const called = Object.entries(routes).filter(([address]) =>
    !pages.includes(address) && !/^\/console($|\/)/.test(address)
  );
  assert.deepEqual(known(apiDoc), known(Object.fromEntries(called)));
  for (const page of pages) assert.ok(routes[page], `${page} is no address any more`);
});

Deno.test("openapi: operation ids are unique, and every path parameter is described", () => {
  const { document } = apiDocument();
  const names: string[] = [];
  for (const [address, methods] of Object.entries(apiDoc)) {
    for (const [method, operation] of Object.entries(methods)) {
      names.push(operation.operationId, operation.summary);
      const path = openApiPath(address, operation);
      const { parameters = [] } = document.paths[path][method.toLowerCase()];
      const described = parameters.map(resolved)
        .filter((parameter: Body) => parameter.in === "path").map(({ name }: Body) => name);
      const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      assert.deepEqual(described.sort(), named.sort(), path);
    }
  }
  assert.equal(new Set(names).size, names.length);
});

Deno.test("openapi: every example is valid for its schema, and every body has one", () => {
  let checked = 0;
  const check = (...place: string[]) => {
    const examples = at(...place, "examples") ?? {};
    const validator = validatorAt(...place, "schema");
    for (const name of Object.keys(examples)) {
      assert.equal(faultsOf(validator, examples[name].value), "", [...place, name].join(" "));
      checked++;
    }
    return Object.keys(examples).length;
  };
  for (const section of ["paths", "webhooks"]) {
    for (const [path, methods] of Object.entries(at(section) ?? {})) {
      for (const [method, operation] of Object.entries<Body>(methods)) {
        const place = [section, path, method];
        if (operation.requestBody) {
          const [type = ""] = Object.keys(operation.requestBody.content);
          const count = check(...place, "requestBody", "content", type);
          assert.ok(count > 0, `${place} has no example`);
        }
        for (const [status, response] of Object.entries<Body>(operation.responses)) {
          for (const type of Object.keys(response.content ?? {})) {
            const count = check(...place, "responses", status, "content", type);
            assert.ok(count > 0 || Number(status) >= 400, `${place} ${status} has no example`);
          }
        }
      }
    }
  }
  assert.ok(checked > 60, `only ${checked}`);
  for (const [name, schema] of Object.entries<Body>(at("components", "schemas") ?? {})) {
    for (const example of schema.examples ?? []) {
      assert.equal(faultsOf(validatorAt("components", "schemas", name), example), "", name);
    }
  }
});

Deno.test("openapi: it is served to any origin, once per copy, and names the server", async () => {
  using world = await createWorld();
  const { status, body, response } = await world.json("/openapi.json", { key: null });
  assert.equal(status, 200);
  assert.equal(body.openapi, "3.1.1");
  assert.deepEqual(body.servers, [{ url: "https://farebox.test" }]);
  assert.equal(response.headers.get("access-control-allow-origin"), "*");
  const etag = response.headers.get("etag") ?? "";
  const headers = { "if-none-match": `"other", W/${etag}` };
  const again = await world.call("/openapi.json", { key: null, headers });
  assert.equal(again.status, 304);
  assert.equal(await again.text(), "");
  const preflight = await world.call("/openapi.json", { key: null, method: "OPTIONS" });
  assert.equal(preflight.status, 204);
});

Deno.test("openapi: it is compressed once, for clients that can read it", async () => {
  using world = await createWorld();
  // As it is served: a world's own app checks each response first.
  const app = await createApp({ ...world.deps, metrics: createMetrics() });
  const ask = (headers: Record<string, string>) =>
    app.fetch(new Request("http://localhost/openapi.json", { headers }));
  const plain = await ask({});
  const text = await plain.text();
  assert.equal(plain.headers.get("content-encoding"), null);
  assert.equal(plain.headers.get("vary"), "accept-encoding");
  for (const accepted of ["gzip", "br, GZIP;q=0.5", "deflate, gzip;q=1.0, *;q=0.5"]) {
    const packed = await ask({ "accept-encoding": accepted });
    assert.equal(packed.headers.get("content-encoding"), "gzip", accepted);
    assert.equal(packed.headers.get("vary"), "accept-encoding");
    const bytes = await packed.bytes();
    assert.equal(packed.headers.get("content-length"), String(bytes.length));
    assert.ok(bytes.length * 5 < text.length);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    assert.equal(await new Response(stream).text(), text);
    const etag = packed.headers.get("etag") ?? "";
    assert.notEqual(etag, plain.headers.get("etag"));
    const again = await ask({ "accept-encoding": accepted, "if-none-match": etag });
    assert.equal(again.status, 304);
  }
  for (const refused of ["br", "gzip;q=0", "gzip; q=0.000", "x-gzip", "*", ""]) {
    const response = await ask({ "accept-encoding": refused });
    assert.equal(response.headers.get("content-encoding"), null, refused);
    await response.body?.cancel();
  }
});

Deno.test("openapi: what the document allows is not refused for its form, and vice versa", async () => {
  using world = await createWorld();
  await world.deposit("ada", "5");
  const schema = validatorAt("components", "schemas", "ChargeRequest");
  for (const amount of ["0", "000", "0.0", "1", "0.50", "1.", "1234567890123", "0.000000001"]) {
    const body = { user: "ada", amount };
    const { status } = await world.json("/v1/user/charge", { body });
    assert.equal(faultsOf(schema, body) === "", status === 200, `${amount} is ${status}`);
  }
  const { ajv } = apiDocument();
  let cursors = 0;
  for (const [path, methods] of Object.entries<Body>(apiDocument().document.paths)) {
    for (const [method, { parameters = [] }] of Object.entries<Body>(methods)) {
      for (const { name, schema } of parameters.map(resolved)) {
        if (name !== "cursor" && name !== "after") continue;
        cursors++;
        assert.notEqual(faultsOf(ajv.compile(schema), ""), "", path);
        const address = path.replace("{projectId}", world.projectId).replace("{user}", "ada");
        const key = path.includes("/admin/") ? adminKey : world.apiKey;
        const asked = `${address}?user=ada&what=events&${name}=`;
        const { status } = await world.json(asked, { key, method: method.toUpperCase() });
        assert.equal(status, 400, path);
      }
    }
  }
  assert.ok(cursors > 8, `${cursors}`);
});

Deno.test("openapi: users and subscriptions are documented with the bounds that are enforced", async () => {
  using world = await createWorld();
  await world.deposit("ada", "5");
  const [path, url] = ["/v1/webhooks/subscriptions", "https://hooks.test/"];
  const subscription = (more: Body) => ({ url, events: ["updated"], ...more });
  const charge = (user: unknown) => ({ amount: "0.5", user });
  const cases: [name: string, path: string, body: Body][] = [
    ["SubscriptionRequest", path, subscription({ url: url.padEnd(2048, "a") })],
    ["SubscriptionRequest", path, subscription({ url: url.padEnd(2049, "a") })],
    ["SubscriptionRequest", path, subscription({ customHeaders: { "X-Mine": "a b~" } })],
    ["SubscriptionRequest", path, subscription({ customHeaders: { "X-Mine": "é" } })],
    ...[null, "ada", "ada 😀", "a\nda", "ada\u0085", "a".repeat(129)].map((
      user,
    ): typeof cases[0] => ["ChargeRequest", "/v1/user/charge", charge(user)]),
  ];
  for (const [name, path, body] of cases) {
    const headers = { "x-service-user": "ada" };
    const { status } = await world.json(path, { body, headers });
    const fault = faultsOf(validatorAt("components", "schemas", name), body);
    assert.equal(fault === "", status < 300, `${status}: ${fault}`);
  }
});

Deno.test("openapi: a summary's times and a request's own id are documented as they are parsed", async () => {
  using world = await createWorld();
  const { ajv } = apiDocument();
  const path = "/v1/admin/projects/{projectId}/summary";
  const { parameters } = at("paths", path, "get") ?? assert.fail();
  const named = (name: string) => {
    const { schema } = parameters.map(resolved).find((each: Body) => each.name === name);
    return (value: string) => faultsOf(ajv.compile(schema), value) === "";
  };
  const address = path.replace("{projectId}", world.projectId);
  for (const to of ["2026-01-31", "2026-01-31T08:00:00Z", "2026-01-31T08:00:00+02:00", "today"]) {
    const query = `?${new URLSearchParams({ to })}`;
    const { status } = await world.json(address + query, { key: adminKey });
    assert.equal(named("to")(to), status === 200, to);
  }
  for (const id of ["mine", "m".repeat(128), "m".repeat(129)]) {
    assert.ok(named("X-Request-Id")(id));
    const { status, response } = await world.json("/v1/models", {
      headers: { "x-request-id": id },
    });
    const isKept = response.headers.get("x-request-id") === id;
    assert.deepEqual([status, isKept], [200, id.length <= 128]);
  }
});

Deno.test("openapi: a slow reader holds a slice of the document or its page, and no more", async () => {
  using world = await createWorld();
  // As it is served: a world's own app checks each response first.
  const app = await createApp({ ...world.deps, metrics: createMetrics() });
  for (const [path, end] of [["/openapi.json", "}"], ["/docs/api/events", "</html>"]] as const) {
    const { body, headers } = await app.fetch(new Request(`http://localhost${path}`));
    let text = "";
    let slices = 0;
    const decoder = new TextDecoder();
    for await (const bytes of body ?? assert.fail()) {
      assert.ok(bytes.length <= 16 * 1024, path);
      text += decoder.decode(bytes, { stream: true });
      slices++;
    }
    assert.ok(slices > 3, path);
    assert.ok(text.endsWith(end), path);
    assert.equal(headers.get("content-length"), String(new TextEncoder().encode(text).length));
  }
});
