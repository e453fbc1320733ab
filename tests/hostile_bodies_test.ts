import assert from "node:assert/strict";
import { ApiError } from "../src/base/errors.ts";
import type { Json } from "../src/base/json.ts";
import { readChat } from "../src/chat/schema.ts";

/** Throws once anybody looks into it. */
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
  Deno.test(`hostile bodies: of ${name} no more is judged than the first at fault`, () => {
    const read = () => readChat({ model: "m", messages }, { bytes: 1, allowedFields: [] });
    assert.throws(read, (error) => error instanceof ApiError && error.param === param);
  });
}
