import type { Json } from "../../src/base/json.ts";

/** Values that programs take for something else, as JSON text: some cannot be written otherwise. */
const hostileValues: readonly string[] = [
  ...["null", "true", "false", "0", "-0", "-1", "1", "0.5", "3", "1e21", "1e400", "-1e999"],
  ...["9007199254740993", "18446744073709551616", "0.1234567890123456789", "123456789012345678e-9"],
  ...["[]", "{}", "[[]]", "[null]", "[{}]", '[""]', '{"":null}', "[1,2,3]"],
  ...['{"toString":1}', '{"valueOf":1,"toString":2}', '{"toString":null}', '{"toJSON":1}'],
  ...['{"__proto__":null}', '{"__proto__":{"type":"text"}}', '{"constructor":1}', '{"then":1}'],
  ...['{"constructor":{"prototype":{"a":1}}}', '{"length":-1}', '{"length":1e9}', '{"0":1}'],
  ...[
    '{"hasOwnProperty":1}',
    '{"rawJSON":"1"}',
    '{"type":{"toString":1}}',
    '{"id":{"toString":1}}',
  ],
  ...['{"type":"text"}', '{"type":["text"]}', '{"id":"x"}', '{"url":{"toString":1}}', '{"name":1}'],
  ...['""', '" "', '"a"', '"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"', '"a\\r\\nx-evil: 1"'],
  ...[
    '"𝕏"',
    '"é"',
    '"\\u2028"',
    '"\\ufeff"',
    '"__proto__"',
    '"constructor"',
    '"toString"',
    '"NaN"',
  ],
  ...[
    '"-1"',
    '"1e400"',
    '"0x10"',
    '"1,5"',
    '"%00"',
    '"%"',
    '"../../etc/passwd"',
    '"{user}"',
    '"$&"',
  ],
  ...['"https://"', '"https://a;b"', '"javascript:alert(1)"', '"data:,"', '"data:a/b;base64,!!"'],
  ...['"2026-13-45T00:00:00Z"', '"+275760-09-13T00:00:01Z"', '"</script><b>"', '"*"', '"{{url}}"'],
  ...[`"${"a".repeat(70_000)}"`, `"${"𝕏".repeat(300)}"`, `[${"1,".repeat(2_000)}1]`],
  ...[
    `[${"{},".repeat(500)}{}]`,
    nested("[", "]", 12),
    nested("[", "]", 498),
    nested("[", "]", 520),
  ],
  ...[nested('{"a":', "}", 490), nested('{"content":[', "]}", 200), nested("[", "]", 10_000)],
];

/** Those that have done harm: half of all faults are one of them. */
const worstValues: readonly string[] = [
  ...[
    '{"toString":1}',
    '{"id":{"toString":1}}',
    '{"type":{"toString":1}}',
    '{"toJSON":1}',
    "1e400",
  ],
  ...['"\\ud800"', '"𝕏"', '"a\\r\\nx-evil: 1"', "null", "[]", "{}", "[null]", "1", '"a"'],
];

const hostileNames: readonly string[] = [
  ...["", "__proto__", "constructor", "toString", "valueOf", "then", "length", "hasOwnProperty"],
  ...[
    "\ud800",
    "𝕏",
    "a\r\nb",
    "\0",
    "0",
    "a.b",
    "id",
    "type",
    "user",
    "model",
    "stream",
    "content",
  ],
  ...["file_id", "cache_control", "metadata", "x".repeat(300)],
];

/** Texts for paths, queries, forms and headers. */
const hostileTexts: readonly string[] = [
  ...[
    "",
    " ",
    "\t",
    "0",
    "-1",
    "1e9",
    "1e400",
    "NaN",
    "null",
    "undefined",
    "true",
    "[]",
    "{}",
    "a",
  ],
  ...[
    "\0",
    "\r\n",
    "a\r\nx-evil: 1",
    "\ud800",
    "𝕏",
    "é",
    "\u2028",
    "\ufeff",
    "__proto__",
    "toString",
  ],
  ...[
    "constructor",
    "%",
    "%ff",
    "%00",
    "%ud800",
    "..",
    "../..",
    "//",
    "\\",
    "'",
    '"',
    "<b>",
    "`",
    ";",
  ],
  ...["$&", "*", "{user}", "{{url}}", "9".repeat(40), "x".repeat(5_000), "2026-13-45", "+1", "1,5"],
  ...["https://a;b,c", "https://[::1", "javascript:alert(1)", "mailto:", "sk_", "Bearer", "=1+1"],
];

function nested(open: string, close: string, depth: number): string {
  return open.repeat(depth) + "1" + close.repeat(depth);
}

const rawMark = /"\\u0001(\d+)\\u0001"/;

interface Place {
  holder: Json[] | Record<string, Json>;
  key: string;
}

/** Spoils requests, by a random number in [0, 1) as often as asked. */
export class Mutator {
  readonly #random: () => number;
  #raw: string[] = [];

  constructor(random: () => number) {
    this.#random = random;
  }

  /** Whether it happens, with this chance. */
  chance(share: number): boolean {
    return this.#random() < share;
  }

  /** One of these. */
  pick<T>(list: readonly T[]): T {
    const [first] = list;
    if (first === undefined) throw new Error("nothing to pick from");
    return list[Math.floor(this.#random() * list.length)] ?? first;
  }

  /** A hostile text. */
  text(): string {
    return this.pick(hostileTexts);
  }

  /** A value as JSON text, with one to three faults in it. */
  json(value: Json): string {
    this.#raw = [];
    const root: { value: Json } = { value: structuredClone(value) };
    for (let left = 1 + Math.floor(this.#random() ** 2 * 3); left > 0; left--) this.#spoil(root);
    let text = JSON.stringify(root.value ?? null);
    for (;;) {
      const found = rawMark.exec(text);
      if (!found) break;
      const raw = this.#raw[Number(found[1])] ?? "null";
      text = text.slice(0, found.index) + raw + text.slice(found.index + found[0].length);
    }
    return this.chance(0.02) ? text.slice(0, Math.floor(this.#random() * text.length)) : text;
  }

  /** The fields of a form with one to three faults in them. */
  fields(fields: readonly [string, string][]): [string, string][] {
    const spoiled = fields.map(([name, text]): [string, string] => [name, text]);
    for (let left = 1 + Math.floor(this.#random() ** 2 * 3); left > 0; left--) {
      const at = Math.floor(this.#random() * (spoiled.length + 1));
      const [name = this.pick(hostileNames), text = ""] = spoiled[at] ?? [];
      const put = this.pick<[string, string][]>([
        [[name, this.text()]],
        [[name, this.text()]],
        [],
        [[name, text], [name, this.text()]],
        [[this.pick(hostileNames), text]],
      ]);
      spoiled.splice(at, 1, ...put);
    }
    return spoiled;
  }

  #spoil(root: { value: Json }): void {
    const { holder, key } = this.pick(placesIn(root));
    const before = Reflect.get(holder, key);
    const kind = Math.floor(this.#random() * 10);
    if (kind < 5) put(holder, key, this.#rawValue());
    else if (kind === 5) remove(holder, key);
    else if (kind === 6) {
      put(holder, key, this.pick<Json>([[before], { value: before }, [[before]]]));
    } else if (kind === 7) this.#rename(holder, key, before);
    else this.#addMember(holder, key, before);
  }

  #rawValue(): Json {
    return this.#keep(this.pick(this.chance(0.5) ? worstValues : hostileValues));
  }

  #keep(text: string): Json {
    this.#raw.push(text);
    return `\u0001${this.#raw.length - 1}\u0001`;
  }

  #rename(holder: Place["holder"], key: string, value: Json): void {
    if (Array.isArray(holder)) return void holder.push(value);
    remove(holder, key);
    const name = this.chance(0.3) ? key.toUpperCase() : this.pick(hostileNames);
    Object.defineProperty(holder, name, { value, ...open });
  }

  /** Adds a member in front of the others or behind them, whose name may be there already. */
  #addMember(holder: Place["holder"], key: string, before: Json): void {
    if (Array.isArray(before)) return put(holder, key, [...before, this.#rawValue(), ...before]);
    if (typeof before !== "object" || before === null) return put(holder, key, this.#rawValue());
    const names = [...Object.keys(before), ...hostileNames];
    const member = `${JSON.stringify(this.pick(names))}:${this.pick(hostileValues)}`;
    const inner = JSON.stringify(before).slice(1, -1);
    const members = this.chance(0.5) ? [member, inner] : [inner, member];
    put(holder, key, this.#keep(`{${members.filter(Boolean).join(",")}}`));
  }
}

const open = { writable: true, enumerable: true, configurable: true };

function put(holder: Place["holder"], key: string, value: Json): void {
  Object.defineProperty(holder, key, { value, ...open });
}

function remove(holder: Place["holder"], key: string): void {
  if (Array.isArray(holder)) holder.splice(Number(key), 1);
  else Reflect.deleteProperty(holder, key);
}

/** Every place of a value, the deeper ones included. */
function placesIn(root: { value: Json }): Place[] {
  const places: Place[] = [{ holder: root, key: "value" }];
  for (let at = 0; at < places.length && places.length < 2_000; at++) {
    const place = places[at];
    const value: unknown = place && Reflect.get(place.holder, place.key);
    if (typeof value !== "object" || value === null) continue;
    const holder = value as Place["holder"];
    for (const key of Object.keys(holder)) places.push({ holder, key });
  }
  // The whole body is a single place among many: it is spoiled no oftener than any other.
  return places.length > 1 ? places.slice(1).concat(places.slice(0, 1)) : places;
}
