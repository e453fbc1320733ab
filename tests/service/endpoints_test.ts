import assert from "node:assert/strict";
import { endpoints, formatNames } from "../../src/base/endpoints.ts";
import { embeddingsFormat } from "../../src/formats/embeddings/embeddings_format.ts";
import { embeddingsDoc } from "../../src/formats/embeddings/api_doc.ts";
import { servedEndpoints } from "../../src/formats/served_endpoints.ts";
import { callApiDoc } from "../../src/inference/api_doc.ts";
import type { PassedFormat } from "../../src/inference/format.ts";
import type { ServedEndpoint } from "../../src/inference/served_endpoint.ts";
import { wordsBelowV1 } from "../../src/mount.ts";
import { endpointRoutes } from "../../src/route_map.ts";
import { unservedEndpointAt } from "../../src/unserved.ts";
import { endpointUrl } from "../../src/upstreams/address.ts";
import { createWorld } from "../support/world.ts";

/** A format that nobody has. */
const sketches: PassedFormat = {
  ...embeddingsFormat,
  path: "/sketches/generations",
  ofDeployments: true,
  requestIdHeader: "sketch-id",
};
const row: ServedEndpoint = { format: sketches, doc: embeddingsDoc, clientsAddV1: true };
const paths = [
  "/v1/sketches/generations",
  "/v1/:user/sketches/generations",
  "/v1/:user/v1/sketches/generations",
];

const reserved = new Set<string>();
const served: [ServedEndpoint["format"], unknown][] = [];
const inference = {
  serve(format: ServedEndpoint["format"], options?: unknown) {
    served.push([format, options]);
    return () => new Response();
  },
};

Deno.test("endpoints: the routes of a new format follow from its row", () => {
  served.length = 0;
  const routes = endpointRoutes(inference, reserved, [row]);
  assert.deepEqual(Object.keys(routes), paths);
  assert.deepEqual(
    Object.values(routes).map(({ cors, secretParams, requestIdHeader, POST }) => [
      cors,
      secretParams,
      requestIdHeader,
      typeof POST,
    ]),
    [
      [true, undefined, "sketch-id", "function"],
      [true, ["user"], "sketch-id", "function"],
      [true, ["user"], "sketch-id", "function"],
    ],
  );
  const forms = new Set(served.map(([format]) => format));
  assert.deepEqual([...forms], [sketches]);
  assert.deepEqual(
    new Set(served.map(([, options]) => options)),
    new Set([
      undefined,
      { reservedUsers: reserved },
    ]),
  );
});

Deno.test("endpoints: the document of a new format follows from its row", () => {
  const docs = callApiDoc(row);
  assert.deepEqual(Object.keys(docs), paths);
  const statuses = (docs["/v1/sketches/generations"]?.POST?.errors ?? []).map((one) => one.status);
  assert.ok(statuses.includes(402), "a refused user gets 402, as the format's kind says");
  const ids = Object.values(docs).map(({ POST }) => POST?.operationId);
  assert.equal(new Set(ids).size, paths.length);
});

Deno.test("endpoints: Azure has a new format where its row says: for each deployment, or once", () => {
  const azure = { url: "https://my.test/openai", apiVersion: "2024-10-21" };
  const query = "?api-version=2024-10-21";
  const { ofDeployments: _, ...once } = sketches;
  assert.equal(
    endpointUrl(azure, sketches, "m 1"),
    `${azure.url}/deployments/m%201/sketches/generations${query}`,
  );
  assert.equal(endpointUrl(azure, once, "m 1"), `${azure.url}/sketches/generations${query}`);
});

Deno.test("endpoints: the first word of a new format is no user's name, and no id", () => {
  const words = wordsBelowV1(endpointRoutes(inference, reserved, [row]));
  assert.deepEqual([...words], ["sketches"]);
  const none: ReadonlySet<string> = new Set();
  for (const path of ["/v1/sketches/files", "/v1/chat/completions/sketches"]) {
    assert.ok(unservedEndpointAt(path, none), path);
    assert.equal(unservedEndpointAt(path, words), null, path);
  }
  assert.ok(unservedEndpointAt("/v1/ada/files", words));
});

Deno.test("endpoints: each row of the table is served at its path, by a format of its name", async () => {
  using world = await createWorld();
  for (const [key, { name, path }] of Object.entries(endpoints)) {
    assert.ok(world.app.routes[`/v1${path}`]?.POST, path);
    assert.ok(world.app.routes[`/v1/:user${path}`]?.POST, path);
    const [, own] = Object.entries(servedEndpoints).find(([served]) => served === key) ?? [];
    assert.deepEqual([own?.format.name, own?.format.path], [name, path]);
    assert.ok(formatNames.includes(name));
  }
});

Deno.test("endpoints: every path that begins as an endpoint does names no user", async () => {
  using world = await createWorld();
  for (const { path } of Object.values(endpoints)) {
    const [, word] = path.split("/");
    const { status, body } = await world.json(`/v1/${word}/files`, { body: {}, key: null });
    assert.ok(status === 404 || status === 405, `${word}: ${status}`);
    assert.doesNotMatch(body.error.message, /Nothing is stored here/, word);
  }
});
