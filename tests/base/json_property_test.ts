import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { ApiError } from "../../src/base/errors.ts";
import {
  boundPassed,
  canonicalJson,
  fromBytesExactly,
  nestsDeeper,
  parseJson,
  toBytes,
} from "../../src/base/json.ts";
import { readJsonBody } from "../../src/base/request.ts";
import { decodeUtf8, encodeUtf8 } from "../../src/base/utf8.ts";
import { always, anyText, jsonText, spoiled } from "../support/property.ts";

const encoder = new TextEncoder();

/** The result of JSON.parse; a zero loses its sign when it is written. */
const plain = (text: string): unknown => JSON.parse(text, (_key, value) => value === 0 ? 0 : value);

Deno.test("json: any JSON that is parsed and written again is equal", () =>
  always(
    300,
    fc.property(jsonText, (text) => {
      const again = JSON.stringify(parseJson(text));
      assert.deepEqual(plain(again), plain(text));
      assert.equal(JSON.stringify(parseJson(again)), again);
      const stored = fromBytesExactly<unknown>(toBytes(parseJson(text)));
      assert.equal(JSON.stringify(stored), again, "also by way of the store");
    }),
  ));

const digits = (max: number) =>
  fc.string({ unit: fc.constantFrom(..."0123456789"), minLength: 1, maxLength: max });
const numberText = fc.tuple(
  fc.constantFrom("", "-"),
  digits(30).map((text) => text.replace(/^0+(?=\d)/, "")),
  fc.option(digits(30), { nil: null }),
  fc.option(fc.tuple(fc.constantFrom("e", "E", "e+", "e-", "E-"), fc.nat(500)), { nil: null }),
).map(([sign, whole, fraction, power]) =>
  sign + whole + (fraction === null ? "" : `.${fraction}`) + (power?.join("") ?? "")
);

/** A number's exact value, as its digits and their power of ten. */
function exactly(text: string): string {
  const [, sign = "", whole = "", fraction = "", power = "0"] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([-+]?\d+))?$/.exec(text) ?? assert.fail(text);
  const all = (whole + fraction).replace(/^0+/, "");
  const kept = all.replace(/0+$/, "");
  const exponent = Number(power) - fraction.length + all.length - kept.length;
  return kept === "" ? "0" : `${sign}${kept}e${exponent}`;
}

Deno.test("json: any number keeps its exact value, however many digits it has", () =>
  always(
    3_000,
    fc.property(numberText, (text) => {
      assert.equal(exactly(JSON.stringify(parseJson(text))), exactly(text));
      const nested = JSON.stringify(parseJson(`{"a":[${text}]}`));
      assert.equal(exactly(nested.slice('{"a":['.length, -2)), exactly(text));
    }),
  ));

Deno.test("json: what JSON.parse rejects is rejected", () =>
  always(
    1_000,
    fc.property(
      fc.oneof(
        anyText,
        fc.tuple(jsonText, fc.nat(), anyText).map(([text, at, put]) => {
          const place = at % (text.length + 1);
          return text.slice(0, place) + put + text.slice(place);
        }),
      ),
      (text) => {
        const isJson = (read: (text: string) => unknown) => {
          try {
            read(text);
            return true;
          } catch (error) {
            assert.ok(error instanceof SyntaxError);
            return false;
          }
        };
        assert.equal(isJson(parseJson), isJson(JSON.parse));
      },
    ),
  ));

function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Object.values(value).reduce((most: number, item) => Math.max(most, depthOf(item)), 0);
}

Deno.test("json: the nesting depth of a text equals that of its value, whatever its strings contain", () =>
  always(
    1_000,
    fc.property(jsonText, fc.nat(8), anyText, (text, max, any) => {
      const value = JSON.parse(text);
      const depth = depthOf(value);
      if (depth > 0) assert.equal(nestsDeeper(text, depth - 1), true);
      // Without the values that a later field of the same name hides.
      const shown = JSON.stringify(value);
      assert.equal(nestsDeeper(shown, depth), false);
      assert.equal(nestsDeeper(shown, max), depth > max);
      assert.equal(typeof nestsDeeper(any, max), "boolean");
    }),
  ));

Deno.test("json: the allowed number of values is accepted, and no more", () => {
  for (let count = 2; count < 50; count++) {
    const passed = (item: string, valuesMax: number) =>
      boundPassed(`[${Array(count).fill(item)}]`, { depthMax: 9, valuesMax });
    assert.equal(passed("0", count + 1), null);
    assert.equal(passed("0", count), "valuesMax");
    assert.equal(passed('{"a,b":",,,"}', 2 * count + 1), null);
    assert.equal(passed('{"a,b":",,,"}', 2 * count - 1), "valuesMax");
  }
});

/** The same value with the keys of its objects reversed. */
function turned(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(turned);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).reverse().map(([key, item]) => [key, turned(item)]),
  );
}

Deno.test("json: canonical text is equal for equal values, and differs for others", () =>
  always(
    200,
    fc.property(jsonText, jsonText, (one, other) => {
      const values = [one, other].map((text) => plain(text));
      const [first = "", second = ""] = values.map(canonicalJson);
      assert.equal(canonicalJson(turned(values[0])), first);
      assert.deepEqual(JSON.parse(first), JSON.parse(JSON.stringify(values[0])));
      // As JSON, which writes null for numbers that are not finite.
      const [mine, theirs] = values.map((value) => JSON.parse(JSON.stringify(value)));
      assert.equal(first === second, isDeepStrictEqual(mine, theirs));
    }),
  ));

Deno.test("json: bytes are UTF-8 exactly when their text encodes to them", () =>
  always(
    2_000,
    fc.property(fc.uint8Array({ maxLength: 8 }), anyText, (bytes, text) => {
      const read = decodeUtf8(bytes);
      // A byte order mark is not part of a JSON text (RFC 8259, 8.1).
      const unmarked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
        ? bytes.slice(3)
        : bytes;
      const lenient = new TextDecoder().decode(bytes);
      const fine = `${encoder.encode(lenient)}` === `${unmarked}`;
      assert.equal(read, fine ? lenient : null);
      assert.equal(decodeUtf8(encoder.encode(`"${text}"`)), `"${text.toWellFormed()}"`);
    }),
  ));

Deno.test("json: a text's bytes are its UTF-8, and stay so while other texts are written", () => {
  const written: [Uint8Array, string][] = [];
  // Characters of up to three bytes, around the length from which a text gets its own buffer.
  const long = fc.tuple(fc.constantFrom("a", "é", "語", "\ud800", "😀"), fc.nat(2_100))
    .map(([text, times]) => text.repeat(times));
  return always(
    1_000,
    fc.property(fc.oneof(anyText, long), (text) => {
      written.push([encodeUtf8(text), text]);
      for (const [bytes, text] of written.slice(-20)) {
        assert.deepEqual(bytes, encoder.encode(text));
      }
    }),
  );
});

const bodyText = fc.oneof(
  fc.integer({ min: 480, max: 520 })
    .map((depth) => `{"a":${"[".repeat(depth)}${"]".repeat(depth)}}`),
  spoiled({ user: "ada", amount: "1", metadata: { list: [1, "two", null] } }),
  jsonText,
  anyText,
);
const anyBody = fc.oneof(
  bodyText.map((text) => encoder.encode(text)),
  fc.tuple(bodyText, fc.nat(), fc.uint8Array({ maxLength: 3 })).map(([text, at, put]) => {
    const bytes = encoder.encode(text);
    const place = at % (bytes.length + 1);
    return Uint8Array.from([...bytes.slice(0, place), ...put, ...bytes.slice(place)]);
  }),
);

Deno.test("json: any bytes are a JSON object of their length, or a 400 or 413, split or not", () =>
  always(
    350,
    fc.asyncProperty(anyBody, fc.integer({ min: 1, max: 50 }), async (bytes, part) => {
      const most = 2_000;
      const parts = new ReadableStream<Uint8Array>({
        start(controller) {
          for (let at = 0; at < bytes.length; at += part) {
            controller.enqueue(bytes.slice(at, at + part));
          }
          controller.close();
        },
      });
      const post = (body: BodyInit, headers = {}) =>
        readJsonBody(new Request("http://localhost", { method: "POST", body, headers }), most)
          .catch((error) => {
            assert.ok(error instanceof ApiError, String(error));
            return error.status;
          });
      const read = await post(parts);
      assert.deepEqual(await post(bytes, { "content-length": `${bytes.length}` }), read);
      if (bytes.length > most) return assert.equal(read, 413);
      const text = decodeUtf8(bytes);
      if (typeof read === "number") {
        assert.equal(read, 400);
        return assert.ok(text === null || !isObjectText(text) || nestsDeeper(text, 500));
      }
      assert.equal(read.bytes, bytes.length);
      assert.ok(isObjectText(text ?? "") && depthOf(read.value) <= 500);
      assert.equal(JSON.stringify(read.value), JSON.stringify(parseJson(text ?? "")));
    }),
  ));

function isObjectText(text: string): boolean {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
