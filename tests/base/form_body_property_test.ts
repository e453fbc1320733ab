import assert from "node:assert/strict";
import fc from "fast-check";
import { ApiError } from "../../src/base/errors.ts";
import { readFormBody, writeForm } from "../../src/base/form_body.ts";
import { always } from "../support/property.ts";

const bytesMax = 100_000;

const read = (bytes: Uint8Array<ArrayBuffer>, type: string) =>
  readFormBody(
    new Request("http://localhost/", {
      method: "POST",
      body: bytes,
      headers: { "content-type": type },
    }),
    bytesMax,
  );

/** Texts and files that look like parts of a form. */
const tricky = fc.array(
  fc.constantFrom("\r\n", "\n", "--", "farebox-", '"', "; name=", "model", "\\", "é", "\0", ":"),
  { maxLength: 12 },
).map((parts) => parts.join(""));
const name = fc.constantFrom("model", "prompt", "include[]", "a.b", "chunking_strategy[type]");
const file = fc.record({
  name: tricky,
  type: fc.constantFrom("audio/wav", "application/octet-stream"),
  bytes: fc.oneof(
    fc.uint8Array({ maxLength: 200 }),
    tricky.map((text) => new TextEncoder().encode(text)),
  ),
});

Deno.test("forms: what is written is read again, whatever texts and files contain", () =>
  always(
    500,
    fc.asyncProperty(fc.dictionary(name, tricky), file, async (texts, file) => {
      const fields = Object.fromEntries(
        Object.entries(texts).map(([name, text]) => [name, name.endsWith("[]") ? [text] : text]),
      );
      const { type, bytes } = writeForm(fields, file);
      const form = await read(bytes, type);
      assert.deepEqual(form.value, fields);
      assert.deepEqual([...form.file?.bytes ?? []], [...file.bytes]);
      assert.equal(form.file?.type, file.type);
      const native = await new Response(bytes, { headers: { "content-type": type } }).formData();
      for (const [name, text] of Object.entries(texts)) assert.equal(native.get(name), text);
    }),
  ));

Deno.test("forms: damaged ones are 400, and never anything else", () =>
  always(
    1_000,
    fc.asyncProperty(
      ...[tricky, file, fc.nat(), fc.nat(255), fc.nat()] as const,
      async (text, file, at, byte, cut) => {
        const { type, bytes } = writeForm({ prompt: text, model: "m" }, file);
        bytes[at % bytes.length] = byte;
        const damaged = bytes.slice(0, cut % 3 === 0 ? cut % bytes.length : bytes.length);
        await read(damaged, type).catch((error) => {
          assert.ok(error instanceof ApiError && error.status === 400, String(error));
        });
      },
    ),
  ));
