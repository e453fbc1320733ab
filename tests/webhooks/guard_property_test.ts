import assert from "node:assert/strict";
import fc from "fast-check";
import { ApiError } from "../../src/base/errors.ts";
import { isPublic } from "../../src/webhooks/delivery/addresses.ts";
import { createGuard } from "../../src/webhooks/delivery/guard.ts";
import { createHandClock } from "../support/clock.ts";
import { always, anyText } from "../support/property.ts";
import { subscriptionsPath } from "../support/webhooks.ts";
import { createWorld } from "../support/world.ts";

/** Ranges of IPv4 that are not on the public internet (IANA), as first address and bits. */
const privateV4: [first: string, bits: number][] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
];

const numberOf = (address: string) =>
  address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
const dotted = (value: number) =>
  [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join(".");

/** An address within one of them, as a number. */
const inside = fc.tuple(fc.constantFrom(...privateV4), fc.nat(2 ** 32 - 1))
  .map(([[first, bits], offset]) => numberOf(first) + (offset % 2 ** (32 - bits)));
const anyV4 = fc.oneof(
  fc.nat(2 ** 32 - 1),
  inside,
  fc.tuple(fc.constantFrom(...privateV4), fc.integer({ min: -2, max: 2 }))
    .map(([[first, bits], by]) => numberOf(first) + by + (by > 0 ? 2 ** (32 - bits) - 2 : 0))
    .filter((value) => value >= 0 && value < 2 ** 32),
);

/** The ways in which a browser's URL may write an IPv4 address. */
const spellings = (value: number): string[] => {
  const [a = 0, b = 0, c = 0, d = 0] = dotted(value).split(".").map(Number);
  return [
    dotted(value),
    `${value}`,
    `0x${value.toString(16)}`,
    `0${value.toString(8)}`,
    [a, b, c, d].map((part) => `0x${part.toString(16)}`).join("."),
    [a, b, c, d].map((part) => `0${part.toString(8)}`).join("."),
    `${a}.${(b * 256 + c) * 256 + d}`,
    `${a}.${b}.${c * 256 + d}`,
    `${dotted(value)}.`,
    `[::ffff:${dotted(value)}]`,
    `[::${dotted(value)}]`,
    `[64:ff9b::${dotted(value)}]`,
    `[2002:${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}::1]`,
    encodeURIComponent(dotted(value)).replace(/\d/g, (digit) => `%3${digit}`),
    dotted(value).replace(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit))),
  ];
};

const guardWith = (addresses: string[]) =>
  createGuard({
    allowCidrs: [],
    dev: false,
    baseUrl: "https://farebox.test",
    resolve: () => Promise.resolve(addresses),
    clock: createHandClock(),
  });

Deno.test("guard: an IPv4 address is public exactly when it is in no special range", () =>
  always(
    3_000,
    fc.property(anyV4, (value) => {
      const special = privateV4.some(([first, bits]) =>
        Math.floor(value / 2 ** (32 - bits)) === Math.floor(numberOf(first) / 2 ** (32 - bits))
      );
      const clouds = ["168.63.129.16"].includes(dotted(value)) ||
        ["192.31.196", "192.52.193", "192.175.48"].includes(dotted(value).replace(/\.\d+$/, ""));
      assert.equal(isPublic(dotted(value)), !special && !clouds, dotted(value));
    }),
  ));

Deno.test("guard: an IPv6 address outside of 2000::/3 is not public, and one that embeds IPv4 is as public as that", () =>
  always(
    1_000,
    fc.property(fc.ipV6(), anyV4, (address, value) => {
      const first = parseInt(/^[0-9a-f]*/i.exec(address)?.[0] || "0", 16);
      const embeds = first <= 0x64;
      if (!embeds && (first < 0x2000 || first > 0x3fff)) {
        assert.equal(isPublic(address), false, address);
      }
      for (const host of spellings(value).filter((each) => each.startsWith("["))) {
        assert.equal(isPublic(host.slice(1, -1)), isPublic(dotted(value)), host);
      }
    }),
  ));

Deno.test("guard: no spelling of any IP address is taken for a host name", () =>
  always(
    250,
    fc.asyncProperty(anyV4, async (value) => {
      const guard = guardWith(["93.184.216.34"]);
      for (const host of spellings(value)) {
        assert.throws(() => guard.checkUrl(`https://${host}/`), { status: 400 }, host);
        // If one were accepted, it would still not be reached.
        const url = URL.parse(`https://${host}/`);
        if (!url || isPublic(dotted(value))) continue;
        assert.deepEqual(await guard.vet(url, "pw_1"), { refused: "blocked_address" }, host);
      }
    }),
  ));

Deno.test("guard: one address of a name that is not public refuses them all", () =>
  always(
    500,
    fc.asyncProperty(
      fc.array(anyV4.map(dotted), { minLength: 1, maxLength: 4 }),
      async (addresses) => {
        const guard = guardWith(addresses);
        const url = new URL("https://hooks.example.com/");
        const fine = addresses.every(isPublic);
        const vetted = await guard.vet(url, "pw_1");
        assert.deepEqual(vetted, fine ? { addresses } : { refused: "blocked_address" });
        if (fine) await guard.checkNow(url, "pw_1");
        else await assert.rejects(guard.checkNow(url, "pw_1"), { status: 400 });
      },
    ),
  ));

const pieces = fc.constantFrom(
  ...["https://", "http://", "HTTPS://", "//", "hooks.example.com", "localhost", "a.local", "x"],
  ...[
    "@",
    ":443",
    ":8443",
    ":22",
    ":",
    "/",
    "\\",
    "?",
    "#",
    "[::1]",
    "user:pass@",
    "%2f",
    "é",
    ".",
  ],
);

/** Nearly an accepted address, part by part. */
const nearUrl = fc.tuple(
  fc.constantFrom("https://", "https://", "https://", "http://", " https://", "https:"),
  fc.constantFrom("", "", "", "user@", "user:pass@", ":pass@"),
  fc.constantFrom(
    "hooks.example.com",
    "Hooks.Example",
    "localhost",
    "a.localhost",
    "a.internal",
    ".a.example",
    "a..example",
    "x",
  ),
  fc.constantFrom("", "", ".", ".."),
  fc.constantFrom("", "", ":443", ":8443", ":80", ":"),
  fc.constantFrom("", "/", "/a?b=c", "/a?b={user}"),
  fc.constantFrom("", "", "#", "#part"),
).map((parts) => parts.join(""));

Deno.test("guard: any text is a public https URL that is kept unchanged, or a 400 of the url", () =>
  always(
    1_000,
    fc.property(
      fc.oneof(
        nearUrl,
        fc.array(pieces, { maxLength: 6 }).map((parts) => parts.join("")),
        anyText,
      ),
      (text) => {
        const guard = guardWith([]);
        let url: URL;
        try {
          url = guard.checkUrl(text);
        } catch (error) {
          assert.ok(error instanceof ApiError && error.status === 400 && error.param === "url");
          return assert.ok(error.message.length < 2_200);
        }
        assert.equal(url.href, new URL(text).href);
        assert.equal(url.protocol, "https:");
        assert.ok(["", "8443"].includes(url.port));
        assert.equal(`${url.username}${url.password}`, "");
        assert.ok(!text.includes("#"));
        assert.match(url.hostname, /^[^.:[\]]+(\.[^.:[\]]+)+\.?$/);
        assert.doesNotMatch(url.hostname, /(^|\.)(local|localhost|internal)\.?$/);
      },
    ),
  ));

const label = fc.stringMatching(/^[a-z]([a-z0-9-]{0,8}[a-z0-9])?$/);
const publicName = fc.tuple(
  fc.array(label, { minLength: 1, maxLength: 3 }),
  fc.constantFrom("com", "museum"),
)
  .map(([labels, end]) => [...labels, end].join("."));

Deno.test("guard: any public name is accepted, on the ports of https, however it is written", () =>
  always(
    300,
    fc.property(
      publicName,
      fc.constantFrom("", ".", ":443", ":8443", ".:8443"),
      fc.constantFrom("", "/", "/hook", "/a/b?c=d%20e", "?q", "/é"),
      (name, end, path) => {
        for (const host of [name, name.toUpperCase()]) {
          const url = guardWith([]).checkUrl(`https://${host}${end}${path}`);
          assert.equal(url.hostname.replace(/\.$/, ""), name.toLowerCase());
        }
      },
    ),
  ));

Deno.test("guard: any text posted as a URL creates a subscription or a 400", async () => {
  using world = await createWorld();
  world.subscriber.names.set("hooks.example.com", ["93.184.216.34"]);
  await always(
    140,
    fc.asyncProperty(
      fc.oneof(
        fc.array(pieces, { maxLength: 5 }).map((parts) =>
          `https://hooks.example.com${parts.join("")}`
        ),
        anyText,
      ),
      async (url) => {
        const body = { url, events: ["archived"] };
        const { status, body: answer } = await world.json(subscriptionsPath, { body });
        if (status !== 201) {
          assert.equal(status, 400, JSON.stringify(answer));
          return assert.equal(answer.error.param, "url");
        }
        assert.equal(answer.subscription.url, new URL(url).href);
        const path = `${subscriptionsPath}/${answer.subscription.id}`;
        await world.call(path, { method: "DELETE" });
      },
    ),
  );
});
