import assert from "node:assert/strict";
import { Secret } from "../../src/base/secret.ts";
import { encodeUtf8 } from "../../src/base/utf8.ts";
import { createKeptTexts, keptHead } from "../../src/store/kept_texts.ts";

const keyOf = (char: string) => new Secret(btoa(char.repeat(32)));
const [old, current] = [keyOf("a"), keyOf("b")];
const random = (length: number) => crypto.getRandomValues(new Uint8Array(length));
const textsWith = (...keys: Secret[]) => createKeptTexts(keys, random);
const place = ["kept_turn", "pw_1", "resp_1"];
const head = { user: "ada", expiresAt: 5 };
const text = "A line\nand another, with “quotes” and \u0000";

Deno.test("kept texts: without SECRETS_KEY they are stored as they are, as 0.9.0 did", () => {
  const value = textsWith().encode(place, head, text);
  assert.deepEqual(value, encodeUtf8(`${JSON.stringify(head)}\n${text}`));
  assert.equal(textsWith().textOf(place, value), text);
  assert.equal(textsWith(current).textOf(place, value), text, "also once a key is set");
});

Deno.test("kept texts: with SECRETS_KEY the text is encrypted for its row, and the head is not", () => {
  const texts = textsWith(current);
  const value = texts.encode(place, head, text);
  assert.deepEqual(keptHead(value), head);
  assert.ok(!new TextDecoder().decode(value).includes("quotes"));
  assert.equal(texts.textOf(place, value), text);
  assert.notDeepEqual(texts.encode(place, head, text), value, "a nonce is used once");
  assert.equal(texts.textOf(["kept_turn", "pw_1", "resp_2"], value), null, "another row");
});

Deno.test("kept texts: an older key reads on beside the new one, and alone the new one does not", () => {
  const value = textsWith(old).encode(place, head, text);
  assert.equal(textsWith(current, old).textOf(place, value), text);
  for (const texts of [textsWith(current), textsWith()]) {
    assert.equal(texts.textOf(place, value), null);
    assert.deepEqual(keptHead(value), head);
  }
});

Deno.test("kept texts: a value that was changed or cut is unreadable, never an error", () => {
  const texts = textsWith(current);
  const value = texts.encode(place, head, text);
  const start = value.indexOf(0) + 1;
  for (let at = start; at < value.length; at++) {
    assert.equal(texts.textOf(place, value.with(at, (value[at] ?? 0) ^ 1)), null, `byte ${at}`);
    assert.equal(texts.textOf(place, value.slice(0, at)), null, `cut at ${at}`);
  }
});

Deno.test("kept texts: an empty text and a large one are read as they were", () => {
  for (const each of ["", "é".repeat(30_000)]) {
    const value = textsWith(current).encode(place, {}, each);
    assert.equal(textsWith(current).textOf(place, value), each);
  }
});
