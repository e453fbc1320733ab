import assert from "node:assert/strict";
import fc from "fast-check";
import { headerValue } from "../../src/base/response.ts";
import { brandOf } from "../../src/pages/brand.ts";
import { seeOther } from "../../src/pages/response.tsx";
import { always } from "../support/property.ts";
import { createWorld } from "../support/world.ts";

const table: readonly [string, string][] = [
  ["", ""],
  ["web_search, mcp", "web_search, mcp"],
  ["https://a.test/%C3%A9?a=b%20c", "https://a.test/%C3%A9?a=b%20c"],
  ["𝕏", "%F0%9D%95%8F"],
  ["a\r\nx-evil: 1", "a%0D%0Ax-evil: 1"],
  ["\0\t\x7f", "%00%09%7F"],
  [" a  b ", "%20a  b%20"],
  ["\ud800é", "%EF%BF%BD%C3%A9"],
];
for (const [text, value] of table) {
  Deno.test(`headers: ${JSON.stringify(text)} is written as ${JSON.stringify(value)}`, () => {
    assert.equal(headerValue(text), value);
  });
}

Deno.test("headers: any text becomes a value that a response can have, and is one line of ASCII", async () => {
  const texts = fc.array(fc.nat(0xffff), { maxLength: 40 })
    .map((units) => String.fromCharCode(...units));
  await always(
    500,
    fc.property(texts, (text) => {
      const value = headerValue(text);
      const { headers } = new Response(null, { headers: { "x-test": value } });
      assert.equal(headers.get("x-test"), value);
      assert.match(value, /^([\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?)?$/);
    }),
  );
  assert.ok(headerValue("𝕏".repeat(100_000)).length < 40_000);
});

Deno.test("headers: a redirect to a foreign address is encoded", () => {
  const { headers } = seeOther("https://pay.test/é\r\nset-cookie: a=b", "req_1");
  assert.equal(headers.get("location"), "https://pay.test/%C3%A9%0D%0Aset-cookie: a=b");
});

const odd = [
  "https://a.test;script-src.x/logo.png",
  "https://*/a",
  "https://a,b/c",
  "https://a'b/c",
];

Deno.test("headers: a logo's host adds nothing else to the policy of pages", async () => {
  using world = await createWorld();
  for (const logoUrl of odd) {
    // As 0.9.0 may have stored it.
    const { allowed } = brandOf("App", { logoUrl, accent: null, supportUrl: null });
    assert.equal(allowed.image, "", logoUrl);
    const { status, body } = await world.json(`/v1/admin/projects/${world.projectId}`, {
      method: "PATCH",
      key: "test-admin-key-of-at-least-32-characters",
      body: { brand: { logoUrl } },
    });
    assert.deepEqual([status, body.error.param], [400, "brand.logoUrl"]);
  }
  for (const url of ["https://a-b.test:8443/x", "https://[::1]/x", "https://bücher.example/x"]) {
    const { allowed } = brandOf("App", { logoUrl: url, accent: null, supportUrl: null });
    assert.equal(allowed.image, new URL(url).origin);
  }
});
