import assert from "node:assert/strict";
import { kvPathFault } from "../../src/config/kv_path.ts";
import { readConfig } from "../../src/config/config.ts";

const production = {
  BASE_URL: "https://farebox.test",
  SECRETS_KEY: btoa("0123456789abcdef0123456789abcdef"),
};

Deno.test("kv path: a wrong URL is refused, without showing it", () => {
  const wrong: [path: string, why: RegExp][] = [
    ["postgres://db.test", /must be like postgres:/],
    ["postgres://:hidden@db.test/money", /must name a user/],
    ["postgres://me:hidden@/money", /must name a host/],
    ["postgres://me:hidden@db.test:99999/money", /port from 1 to 65535/],
    ["postgres://me:hidden@db.test/money?sslmode=maybe", /sslmode of disable/],
    ["postgres://me:hidden@db.test/money?timeout=3", /unknown parameter; known are/],
    ["postgres://me:%zz@db.test/money", /percent-encoded/],
    ["postgres://me:s@hidden@db.test/money", /more than one '@'/],
    ["postgres://me:hidden@db@db.test/money", /more than one '@'/],
    ["postgres://me:a/hidden@db.test/money", /must be like postgres:/],
    ["postgres://me:12/hidden@db.test", /must name a user/],
    ["postgres://me:p/w?hidden@db.test/money", /unknown parameter/],
    ["postgres://me:p@db.test/money?hidden=3", /unknown parameter/],
    ["postgres:/me:hidden@db.test/money", /must be the path of a file/],
    ["postgres//me:hidden@db.test/money", /must be the path of a file/],
    ["me:hidden@db.test/money", /must be the path of a file/],
    ["mysql://me:hidden@db.test/money", /must be the path of a file/],
    ["https://me:hidden@kv.test", /DENO_KV_ACCESS_TOKEN/],
    ["https://kv.test?token=hidden", /DENO_KV_ACCESS_TOKEN/],
  ];
  for (const [KV_PATH, why] of wrong) {
    const environment = { ...production, KV_PATH };
    const fault = Object(assertThrown(() => readConfig(environment, { dev: false })));
    assert.match(fault.message, why);
    assert.match(fault.message, /^KV_PATH /);
    assert.ok(!fault.message.includes("hidden"), fault.message);
  }
});

Deno.test("kv path: files and databases that there can be are accepted", () => {
  for (
    const path of [
      ":memory:",
      "data/farebox.kv",
      "/var/lib/farebox/a@b.kv",
      "C:\\farebox\\farebox.kv",
      "2026-01-31T10:00.kv",
      "postgres://me@db.test/money",
      "postgres://me:p%40ss@db.test,db2.test:6432/money?sslmode=require",
      "https://kv.test/v1",
    ]
  ) assert.equal(kvPathFault(path), null, path);
});

function assertThrown(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  assert.fail("nothing was thrown");
}
