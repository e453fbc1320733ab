import assert from "node:assert/strict";
import { createRequestPath, invalidHostPath } from "../../src/base/request_path.ts";
import { makeFolder, startFarebox } from "../support/process.ts";
import { adminKey } from "../support/world.ts";

const pathOf = createRequestPath();

const paths: [url: string, host: string | null, path: string][] = [
  ["http://farebox.example/v1/models?a=/b", "farebox.example", "/v1/models"],
  ["http://farebox.example:8000//v1//models/", "farebox.example:8000", "/v1/models"],
  ["http://[::1]:8000/wallet#x", "[::1]:8000", "/wallet"],
  ["http://farebox.example/healthz", null, "/healthz"],
  ["http://farebox.example/healthz", "", "/healthz"],
  ["http://farebox.example/healthz", "other.example", "/healthz"],
  ["http://x/v1/admin/projects", "x/v1/admin", invalidHostPath],
  ["http://x/v1/admin/projects?/healthz", "x/v1/admin/projects?", invalidHostPath],
  ["http://x#/healthz", "x#", invalidHostPath],
  ["http://a b/healthz", "a b", invalidHostPath],
  ["http://me@x/healthz", "me@x", invalidHostPath],
  ["http://[::1/healthz", "[::1", invalidHostPath],
  ["http://x:99999/healthz", "x:99999", invalidHostPath],
  ["http://x:1", null, invalidHostPath],
];

for (const [url, host, path] of paths) {
  Deno.test(`host: ${url} with ${JSON.stringify(host)} leads to ${path}`, () => {
    const headers = new Headers(host === null ? {} : { host });
    assert.equal(pathOf({ url, headers }), path);
  });
}

/** The response to a request that is written by hand. */
async function ask(url: string, lines: string[]): Promise<string> {
  const { hostname, port } = new URL(url);
  using connection = await Deno.connect({ hostname, port: Number(port) });
  const text = [...lines, "Connection: close", "", ""].join("\r\n");
  await connection.write(new TextEncoder().encode(text));
  return await new Response(connection.readable).text();
}

Deno.test("host: an invalid one is 400, leads nowhere else, and is not an error of the service", async () => {
  await using folder = await makeFolder();
  await using farebox = await startFarebox({
    folder: folder.path,
    dev: true,
    env: { ADMIN_KEY: adminKey },
  });
  const key = `Authorization: Bearer ${adminKey}`;
  for (const host of ["x/v1/admin/projects?", "x/openapi.json#", "[::1", "a b", "foo:99999"]) {
    for (const path of ["/healthz", "/console"]) {
      const answer = await ask(farebox.url, [`GET ${path} HTTP/1.1`, `Host: ${host}`, key]);
      assert.match(answer, /^HTTP\/1.1 400 /, `${host}: ${answer}`);
    }
  }
  assert.match(await ask(farebox.url, ["GET /healthz HTTP/1.1", "Host: x:80"]), /^HTTP\/1.1 200 /);
  assert.doesNotMatch(farebox.output(), /"level":"error"/);
});
