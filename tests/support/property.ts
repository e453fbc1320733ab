import fc from "fast-check";

/**
 * The seed of all cases, which are thus alike in every run. A failure is printed with the seed and
 * the smallest case.
 */
const seed = Number(Deno.env.get("FAST_CHECK_SEED") ?? 20_260_101);
/** Multiplies the number of cases that tests request, which is the minimum. */
const factor = Math.max(1, Number(Deno.env.get("FAST_CHECK_RUNS") ?? 1));

/** Checks that a property holds for a number of cases, and shows the smallest failing one. */
export async function always<T>(
  runs: number,
  property: fc.IProperty<T> | fc.IAsyncProperty<T>,
): Promise<void> {
  const numRuns = Math.round(runs * factor);
  await fc.assert(property as fc.IAsyncProperty<T>, { seed, numRuns });
}

/** UTF-16 of any kind: halves of pairs, controls, anything. */
const codeUnits = fc.array(fc.nat(0xffff), { maxLength: 12 })
  .map((units) => String.fromCharCode(...units));

/** Any characters; the library's own unit for them takes a second to create. */
const codePoints = fc.array(fc.nat(0x10ffff), { maxLength: 12 })
  .map((points) => String.fromCodePoint(...points));

/** Text that has broken parsers before. */
const hostileTexts = [
  "",
  " ",
  "\u0000",
  "\u007f",
  "\u009b",
  "\r\n",
  "a\tb",
  "\ufeff",
  "\u2028",
  "\u202eabc",
  "\ud800",
  "\udc00\ud800",
  "é",
  "😀",
  "e\u0301",
  "__proto__",
  "constructor",
  "toString",
  "rawJSON",
  "null",
  "undefined",
  "NaN",
  "1e400",
  "-1",
  "*",
  "..",
  "../../etc/passwd",
  "%00",
  "%ff",
  "%",
  "{{url}}",
  "{user}",
  "$&",
  "=1+1",
  '"',
  "\\",
  "<script>alert(1)</script>",
  "'; drop table users; --",
  "data: [DONE]\n\n",
];

/** Any text at all, well-formed or not. */
export const anyText: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(...hostileTexts),
  fc.string({ unit: "grapheme", maxLength: 20 }),
  codePoints,
  fc.string({ unit: "binary-ascii", maxLength: 20 }),
  codeUnits,
  fc.tuple(fc.constantFrom("k", "é", "€", "😀", "\u0001"), fc.nat(3_000))
    .map(([text, times]) => text.repeat(times)),
);

/** Text that is well-formed Unicode. */
export const wellFormedText: fc.Arbitrary<string> = anyText.map((text) => text.toWellFormed());

/** A header's value as Fetch accepts it: each character a byte, without NUL and line breaks. */
export const headerValue: fc.Arbitrary<string> = fc.oneof(
  fc.array(fc.nat(0xff), { maxLength: 300 }),
  fc.array(fc.integer({ min: 0x21, max: 0x7e }), { maxLength: 300 }),
  anyText.map((text) => [...new TextEncoder().encode(text)]),
).map((bytes) =>
  String.fromCharCode(...bytes.filter((byte) => byte !== 0 && byte !== 10 && byte !== 13))
);

const numbers = fc.oneof(
  fc.constantFrom("0", "-0", "-1", "0.1", "1.0", "5e-1", "1e400", "-1e400", "1e-400", "1e21"),
  fc.constantFrom(
    "12345678901234567890",
    "9007199254740993",
    "2147483648",
    "0.1234567890123456789",
  ),
  fc.integer().map(String),
  fc.bigInt().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
);

const deep = fc.integer({ min: 1, max: 600 }).chain((depth) =>
  fc.constantFrom(
    "[".repeat(depth) + "]".repeat(depth),
    '{"a":'.repeat(depth) + "null" + "}".repeat(depth),
  )
);

/** Any JSON value, as text: numbers that no double holds, any string, names that break code. */
export const jsonText: fc.Arbitrary<string> = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.oneof(
      fc.constantFrom("null", "true", "false", "[]", "{}"),
      // Longer than a key of the store may be.
      fc.constant(JSON.stringify("k".repeat(2_500))),
      numbers,
      anyText.map((text) => JSON.stringify(text)),
      deep,
    ),
    fc.array(tie("value"), { maxLength: 4 }).map((items) => `[${items.join(",")}]`),
    fc.array(fc.tuple(anyText, tie("value")), { maxLength: 4 }).map((fields) =>
      `{${fields.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(",")}}`
    ),
  ),
})).value;

type Path = readonly (string | number)[];

/** One change to a body: a value replaced, removed, or added. */
interface Edit {
  path: Path;
  what: "replace" | "remove" | "add";
  name: string;
  value: string;
}

/** A valid body, as JSON text, after one change anywhere in it, or a few. */
export function spoiled(body: object): fc.Arbitrary<string> {
  const paths = pathsIn(body);
  const edit = fc.record<Edit>({
    path: fc.oneof(
      fc.constantFrom(...paths),
      fc.constantFrom(...paths.filter(({ length }) => length < 2)),
    ),
    what: fc.constantFrom("replace", "replace", "remove", "add"),
    name: anyText,
    // A value of the right type gets further in.
    value: fc.oneof(jsonText, anyText.map((text) => JSON.stringify(text)), numbers),
  });
  const edits = fc.oneof(
    { weight: 3, arbitrary: fc.tuple(edit) },
    { weight: 1, arbitrary: fc.array(edit, { minLength: 2, maxLength: 3 }) },
  );
  return edits.map((edits) => withEdits(body, edits));
}

function pathsIn(value: unknown, path: Path = []): Path[] {
  if (typeof value !== "object" || value === null) return [path];
  const inside = Object.entries(value).flatMap(([name, item]) => pathsIn(item, [...path, name]));
  return [path, ...inside];
}

function withEdits(body: object, edits: readonly Edit[]): string {
  const root = { body: structuredClone(body) };
  const marks = edits.map((_, at) => `@edit ${at}@`);
  for (const [at, { path, what, name }] of edits.entries()) {
    const parent = follow(root, ["body", ...path].slice(0, -1));
    const last = ["body", ...path].at(-1) ?? "body";
    if (!parent || !Object.hasOwn(parent, last)) continue;
    const target = follow(parent, [last]);
    if (what === "remove") Reflect.deleteProperty(parent, last);
    else if (what === "add" && Array.isArray(target)) target.push(marks[at]);
    else if (what === "add" && target) define(target, name, marks[at]);
    else define(parent, last, marks[at]);
  }
  const text = JSON.stringify(root.body) ?? "null";
  return text.replace(/"@edit (\d+)@"/g, (_, at) => edits[Number(at)]?.value ?? "null");
}

function follow(from: object, path: Path): object | null {
  let at: unknown = from;
  for (const part of path) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, part)) return null;
    at = Reflect.get(at, part);
  }
  return typeof at === "object" ? at : null;
}

/** Also where the name is `__proto__`, which plain assignment would not set. */
function define(target: object, name: string | number, value: unknown): void {
  const how = { value, enumerable: true, configurable: true, writable: true };
  Object.defineProperty(target, name, how);
}
