import assert from "node:assert/strict";
import { ApiError } from "../../src/base/errors.ts";
import { boundPassed, type Json } from "../../src/base/json.ts";
import { readJsonBody } from "../../src/base/request.ts";
import { readChatRequest } from "../../src/formats/chat/request.ts";
import { createWorld } from "../support/world.ts";

/** Throws when it is accessed. */
const untouched = new Proxy({}, {
  get: () => assert.fail("read beyond the first fault"),
  ownKeys: () => assert.fail("read beyond the first fault"),
});

const lists: [string, Json, string][] = [
  ["messages", [0, untouched], "messages.0"],
  ["a message's parts", [{ role: "user", content: [0, untouched] }], "messages.0.content"],
  ["parts without type", [{ role: "user", content: [{}, untouched] }], "messages.0.content"],
];

for (const [name, messages, param] of lists) {
  Deno.test(`hostile bodies: ${name} is validated only up to the first error`, () => {
    const read = () =>
      readChatRequest({ model: "m", messages }, {
        bytes: 1,
        fields: { unknown: "refuse", allowed: [] },
      });
    assert.throws(read, (error) => error instanceof ApiError && error.param === param);
  });
}

const signature = `t=1767225600,v1=${"a".repeat(64)}`;
const stripe = { secretKey: "sk_test_of_the_owner", webhookSecret: "whsec_of_the_owner" };

/** One path of each kind of body, and its limit in bytes. */
const bounds = (projectId: string) => ({
  "/v1/user/charge": 128 * 1024,
  [`/v1/stripe/${projectId}`]: 64 * 1024,
  "/console/sign-in": 4096,
});

/** A content length that is not a number; one that is sent twice is joined by a comma. */
const unclear = ["5, 5", "5,5", "0x5", "", " ", "-1"];

for (const length of unclear) {
  Deno.test(`hostile bodies: with a content length of '${length}', no more than the limit is read`, async () => {
    using world = await createWorld({ project: { stripe } });
    for (const [path, bytesMax] of Object.entries(bounds(world.projectId))) {
      let read = 0;
      const body = new ReadableStream({
        pull(controller) {
          read += 64 * 1024;
          if (read > bytesMax + 256 * 1024) return controller.error("read far beyond the limit");
          controller.enqueue(new Uint8Array(64 * 1024).fill(0x20));
        },
      });
      const headers = { "content-length": length, "stripe-signature": signature };
      const response = await world.call(path, { raw: body, method: "POST", headers });
      assert.equal(response.status, 413, path);
      await response.body?.cancel();
    }
  });
}

Deno.test("hostile bodies: a content length beyond the limit is refused before anything is read", async () => {
  const request = new Request("http://localhost/", {
    method: "POST",
    body: "{}",
    headers: { "content-type": "application/json", "content-length": "300000000" },
  });
  const refused = (error: unknown) => error instanceof ApiError && error.status === 413;
  await assert.rejects(readJsonBody(request, 1024), refused);
  assert.equal(request.bodyUsed, false);
});

Deno.test("hostile bodies: more values than any client sends are refused before they are parsed", async () => {
  using world = await createWorld({ project: { unknownFields: "pass" } });
  await world.deposit("ada", "1");
  const chatWith = (list: string) =>
    `{"model":"test-model","user":"ada","messages":[{"role":"user","content":"a,[{:"}],"x":${list}}`;
  for (const item of ["1", "[]", '{"a":1}']) {
    const list = `[1e0${`,${item}`.repeat(200_000)}]`;
    const { status, body } = await world.json("/v1/chat/completions", { raw: chatWith(list) });
    assert.deepEqual([status, body.error.code], [400, "invalid_json"], item);
    assert.match(body.error.message, /more than 200000 values/);
  }
  const fine = `[1e0${",1".repeat(150_000)}]`;
  const { status } = await world.json("/v1/chat/completions", { raw: chatWith(fine) });
  assert.equal(status, 200);
});

Deno.test("hostile bodies: characters inside a string do not count as values", () => {
  const bounds = { depthMax: 2, valuesMax: 4 };
  for (const text of ['["a,b,c,d,e"]', '{"a":[1,2]}', '["\\",","[[[{{{"]', "[1,2,3]"]) {
    assert.equal(boundPassed(text, bounds), null, text);
  }
  assert.equal(boundPassed("[1,2,3,4]", bounds), "valuesMax");
  assert.equal(boundPassed("[[[1]]]", bounds), "depthMax");
});
