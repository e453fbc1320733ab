import assert from "node:assert/strict";
import { Secret } from "../../src/base/secret.ts";
import { createSecrets } from "../../src/store/secrets.ts";

const old = new Secret(btoa("0123456789abcdef0123456789abcdef"));
const fresh = new Secret(btoa("another key of thirty-two bytes!"));
const place = ["project", "prj_1"];
const open = (...keys: Secret[]) =>
  createSecrets(keys, (length) => crypto.getRandomValues(new Uint8Array(length)));

Deno.test("secrets: a key can be replaced: what the old one encrypted and signed is still valid", async () => {
  const [before, during, after] = await Promise.all([open(old), open(fresh, old), open(fresh)]);
  const sealed = await before.seal("sk-upstream", place);
  assert.equal(await during.open(sealed, place), "sk-upstream");
  const resealed = await during.reseal(sealed, place);
  assert.ok(resealed);
  assert.equal(await after.open(resealed, place), "sk-upstream");
  await assert.rejects(before.open(resealed, place), { status: 503, code: "secret_unreadable" });
  await assert.rejects(after.reseal(sealed, place), { status: 503, code: "secret_unreadable" });

  const [signature, newer] = await Promise.all([before, during].map(async (secrets) => {
    const bytes = await (await secrets.signer("links")).sign("ada");
    return Uint8Array.from(bytes);
  }));
  assert.ok(signature && newer);
  const between = await during.signer("links");
  assert.deepEqual([await between.verify("ada", signature), await between.verify("ada", newer)], [
    true,
    true,
  ]);
  const later = await after.signer("links");
  assert.deepEqual([await later.verify("ada", signature), await later.verify("ada", newer)], [
    false,
    true,
  ]);
});

Deno.test("secrets: what is already under the first key is not encrypted again", async () => {
  const secrets = await open(fresh, old);
  const sealed = await secrets.seal("sk-upstream", place);
  assert.equal(await secrets.reseal(sealed, place), null);
});
