import assert from "node:assert/strict";
import { canonicalJson, parseJson } from "../../src/base/json.ts";
import { decodeUtf8 } from "../../src/base/utf8.ts";
import { chatBody, chatPath } from "../support/books.ts";
import { createWorld } from "../support/world.ts";

const exactNumbers = [
  "12345678901234567890",
  "-12345678901234567890",
  "9007199254740993",
  "1e400",
  "-1e400",
  "1E400",
  "0.12345678901234567890123",
  "3.141592653589793238462643",
  "123456789012345678901234567890.5",
  "1.7976931348623159e308",
];

Deno.test("json: a number that a double would change is written back as it was sent", () => {
  for (const number of exactNumbers) {
    for (const text of [number, `[${number}]`, `{"a":{"b":[1,${number}]}}`]) {
      assert.equal(JSON.stringify(parseJson(text)), text);
    }
  }
});

const plain = [
  "null",
  "true",
  "0",
  "1",
  "0.1",
  "-5",
  "1e+21",
  '"12345678901234567890"',
  '"1e400"',
  "[]",
  "{}",
  '{"a":[1,2,{"b":null}]}',
  '{"__proto__":{"polluted":12345678901234567890}}',
  '"\\u2028 \\ud800"',
];

Deno.test("json: everything else is parsed as JSON.parse does", () => {
  for (const text of plain.slice(0, -2)) {
    assert.deepEqual(parseJson(text), JSON.parse(text), text);
  }
  for (const [text, value] of [["1.0", 1], ["5e-1", 0.5], ["1e2", 100], ["1.50", 1.5]] as const) {
    assert.equal(parseJson(text), value);
  }
  parseJson('{"__proto__":{"polluted":12345678901234567890}}');
  assert.equal(({} as Record<string, unknown>).polluted, undefined);
});

Deno.test("json: what is not JSON throws a SyntaxError, with big numbers in it or not", () => {
  for (
    const text of ["", "{", "[1,]", "01", "1e", "NaN", "{'a':1}", "[12345678901234567890", "// 1"]
  ) {
    assert.throws(() => parseJson(text), SyntaxError, text);
  }
});

Deno.test("json: canonical text does not depend on the order of keys, at any depth", () => {
  const one = { b: [{ y: 1, x: null }], a: { d: "1", c: true } };
  const other = { a: { c: true, d: "1" }, b: [{ x: null, y: 1 }] };
  assert.equal(canonicalJson(one), '{"a":{"c":true,"d":"1"},"b":[{"x":null,"y":1}]}');
  assert.equal(canonicalJson(other), canonicalJson(one));
  assert.notEqual(canonicalJson([1, 2]), canonicalJson([2, 1]));
  const exact = (text: string) => canonicalJson(parseJson(text));
  assert.notEqual(exact('{"seed":12345678901234567890}'), exact('{"seed":12345678901234567891}'));
});

Deno.test("json: a number too small for a double is written back as it was sent", () => {
  for (const number of ["1e-400", "-1e-400", "[1.5E-400]"]) {
    assert.equal(JSON.stringify(parseJson(number)), number);
  }
});

Deno.test("json: a number too big for a double is not a JSON object", async () => {
  using world = await createWorld();
  for (const number of exactNumbers) {
    const raw = `{"user":"ada","amount":"1","metadata":${number}}`;
    const { status, body } = await world.json("/v1/user/balance/deposit", { raw });
    assert.equal(status, 400, number);
    assert.equal(body.error.param, "metadata");
  }
  assert.equal((await world.balance("ada")).balance, "0");
});

Deno.test("json: ill-formed UTF-8 is distinguished from text", () => {
  const bytes = (...values: number[]) => decodeUtf8(Uint8Array.from(values));
  assert.equal(bytes(0xc3, 0xa9), "é");
  assert.equal(bytes(), "");
  for (
    const wrong of [[0xff], [0xc3], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf5, 0x80, 0x80, 0x80]]
  ) {
    assert.equal(bytes(...wrong), null);
  }
});

Deno.test("json: a chat's big numbers reach the upstream unchanged", async () => {
  using world = await createWorld({ project: { allowedFields: ["x_vendor"] } });
  await world.deposit("ada", "1");
  for (const number of exactNumbers) {
    const body = JSON.stringify(chatBody("ada")).replace(/^\{/, `{"x_vendor":{"n":[${number}]},`);
    const { status } = await world.json(chatPath, { raw: body });
    assert.equal(status, 200);
    const sent = world.upstream.calls.at(-1)?.text ?? "";
    assert.ok(sent.includes(`"x_vendor":{"n":[${number}]}`), sent);
  }
});

Deno.test("json: a response's big numbers reach the caller unchanged", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  for (const number of exactNumbers) {
    world.upstream.once(() =>
      new Response(
        `{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},` +
          `"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5,` +
          `"total_tokens":15},"x_vendor":{"n":[${number}]}}`,
        { headers: { "content-type": "application/json" } },
      )
    );
    const response = await world.call(chatPath, { body: chatBody("ada") });
    const text = await response.text();
    assert.ok(text.includes(`"x_vendor":{"n":[${number}]}`), text);
  }
});

Deno.test("json: metadata is returned unchanged, to the last digit of its numbers", async () => {
  using world = await createWorld();
  for (const number of exactNumbers) {
    const user = `user ${number}`;
    const metadata = `{"order":${number},"nested":{"list":[${number}]},"text":"${number}"}`;
    const raw = `{"user":${JSON.stringify(user)},"amount":"1","metadata":${metadata}}`;
    assert.equal((await world.json("/v1/user/balance/deposit", { raw })).status, 200);
    const path = `/v1/user/activities?user=${encodeURIComponent(user)}`;
    const text = await (await world.call(path)).text();
    assert.ok(text.includes(`"metadata":${metadata}`), text);
  }
});
