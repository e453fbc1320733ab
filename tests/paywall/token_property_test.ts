import assert from "node:assert/strict";
import fc from "fast-check";
import { Secret } from "../../src/base/secret.ts";
import { userIdCharsMax } from "../../src/base/limits.ts";
import { createDeviceCookies } from "../../src/wallets/device_cookies.ts";
import { createLinks, fillTemplate } from "../../src/paywall/links.ts";
import { fromBase64Url, toBase64Url } from "../../src/base/base64.ts";
import { createSignedTokens } from "../../src/store/signed_tokens.ts";
import type { Project } from "../../src/projects/schema.ts";
import { createSecrets } from "../../src/store/secrets.ts";
import { createHandClock } from "../support/clock.ts";
import { always, anyText, headerValue, jsonText, wellFormedText } from "../support/property.ts";
import { adminKey, createWorld } from "../support/world.ts";

const secrets = await createSecrets(
  [new Secret(btoa("0123456789abcdef0123456789abcdef"))],
  (length) => new Uint8Array(length),
);
const tokens = await createSignedTokens(secrets, "tests");
const others = await createSignedTokens(secrets, "other tests");
const clock = createHandClock();
const baseUrl = "https://farebox.test";
const id = (kind: string) => `${kind}_1`;
const world = await createWorld({ env: { BASE_URL: baseUrl } });
const linkDeps = { ...world.deps, clock, id };
const devices = await createDeviceCookies({ ...world.deps, clock }, secrets);

const alphabet = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"];

Deno.test("token: bytes are decoded to themselves, and no other text decodes to them", () =>
  always(
    1_000,
    fc.property(
      fc.uint8Array({ maxLength: 40 }),
      fc.string({ unit: fc.constantFrom(...alphabet, "=", "+", "/", " ", "é"), maxLength: 8 }),
      (bytes, text) => {
        assert.deepEqual(fromBase64Url(toBase64Url(bytes)), bytes);
        const read = fromBase64Url(text);
        if (read !== null) assert.equal(toBase64Url(read), text);
      },
    ),
  ));

Deno.test("token: any value is read back from its token, and for no other purpose", () =>
  always(
    100,
    fc.asyncProperty(jsonText.map((text) => JSON.parse(text)), async (value) => {
      const token = await tokens.make(value);
      assert.match(token, /^[\w-]+\.[\w-]{43}$/);
      // As JSON: without -0 and Infinity.
      assert.deepEqual(await tokens.read(token), JSON.parse(JSON.stringify(value)));
      assert.equal(await others.read(token), null);
    }),
  ));

/** A token that was changed in transit, or put together from two. */
const damage = fc.oneof(
  fc.record({
    kind: fc.constant("change"),
    at: fc.nat(),
    by: fc.constantFrom(...alphabet, ".", "=", " ", "%", "é", "\u0000"),
  }),
  fc.record({ kind: fc.constant("cut"), at: fc.nat(), by: fc.constant("") }),
  fc.record({ kind: fc.constant("head"), at: fc.nat(), by: fc.constant("") }),
  fc.record({
    kind: fc.constant("put"),
    at: fc.nat(),
    by: fc.constantFrom(...alphabet, "=", "\n"),
  }),
  fc.record({ kind: fc.constant("join"), at: fc.constant(0), by: fc.constantFrom("", ".", " ") }),
);

function damaged(token: string, { kind, at, by }: { kind: string; at: number; by: string }) {
  const place = at % token.length;
  switch (kind) {
    case "change":
      return token.slice(0, place) + by + token.slice(place + 1);
    case "cut":
      return token.slice(0, place);
    case "head":
      return token.slice(place + 1);
    case "put":
      return token.slice(0, place) + by + token.slice(place);
    default:
      return token + by + token;
  }
}

Deno.test("token: a token with a character changed, lost or added is rejected", () =>
  always(
    700,
    fc.asyncProperty(fc.array(wellFormedText, { maxLength: 3 }), damage, async (value, how) => {
      const token = await tokens.make(value);
      const other = damaged(token, how);
      if (other !== token) assert.equal(await tokens.read(other), null);
    }),
  ));

Deno.test("token: each other last character is rejected, though it may encode the same bytes", () =>
  always(
    50,
    fc.asyncProperty(fc.nat(), async (value) => {
      const token = await tokens.make(value);
      for (const last of alphabet) {
        const other = token.slice(0, -1) + last;
        assert.equal(await tokens.read(other), other === token ? value : null, other);
      }
    }),
  ));

Deno.test("token: a payload is never valid with the signature of another", () =>
  always(
    200,
    fc.asyncProperty(wellFormedText, wellFormedText, async (one, other) => {
      fc.pre(one !== other);
      const [payload] = (await tokens.make([one])).split(".");
      const [, signature] = (await tokens.make([other])).split(".");
      assert.equal(await tokens.read(`${payload}.${signature}`), null);
    }),
  ));

const userIds = wellFormedText.map((text) => `u${text}`.slice(0, userIdCharsMax).toWellFormed());
const hostedProject = { id: "pw_1", topUpUrl: null } as Project;

Deno.test("token: a link leads to its own project and user, until it expires", () =>
  always(
    100,
    fc.asyncProperty(userIds, async (user) => {
      // Of one service, the eleventh in a second is not short.
      const links = await createLinks({ deps: linkDeps, secrets });
      const token = new URL(await links.topUpUrl(hostedProject, user)).pathname.slice(
        "/t/".length,
      );
      assert.match(token, /^\w{17}$/);
      assert.deepEqual(await links.readTopUpLink(token), { projectId: "pw_1", user });
      assert.equal(await links.readAuthorizationLink(token), null);
      const asked = await links.createAuthorizationLink(hostedProject, user);
      const approval = new URL(asked.url).pathname.slice("/a/".length);
      const issuedAt = clock.now();
      const expected = { projectId: "pw_1", user, requestId: "areq_1", issuedAt };
      assert.deepEqual(await links.readAuthorizationLink(approval), expected);
      assert.equal(await links.readTopUpLink(approval), null);
      const then = { ...clock, now: () => clock.now() + 7 * 86_400_000 };
      const later = await createLinks({ deps: { ...linkDeps, clock: then }, secrets });
      assert.equal(await later.readTopUpLink(token), null);
      assert.equal(await later.readAuthorizationLink(approval), null);
    }),
  ));

const asking = (cookie: string) => new Request(baseUrl, { headers: { cookie } });

/** Cookies of other services, some with a name close to ours. */
const decoy = fc.oneof(
  fc.constantFrom(
    "",
    "farebox_wallet=a.b",
    "x__Host-farebox_wallet=a.b",
    "__Host-farebox_wallets=a",
  ),
  headerValue.filter((text) => !text.includes("farebox")),
);

Deno.test("token: a device is recognized by its cookie among any others", () =>
  always(
    300,
    fc.asyncProperty(fc.uuid(), decoy, decoy, async (person, before, after) => {
      const [cookie = ""] = (await (await devices.grantFor(person)).cookie()).split(";");
      const header = `${before}; ${cookie}; ${after}`;
      assert.equal(await devices.personOf(asking(header)), person);
    }),
  ));

Deno.test("token: no cookie except a complete one belongs to anyone, whatever its bytes are", () =>
  always(
    500,
    fc.asyncProperty(fc.uuid(), damage, headerValue, async (person, how, value) => {
      const [cookie = ""] = (await (await devices.grantFor(person)).cookie()).split(";");
      const start = cookie.indexOf("=") + 1;
      const name = cookie.slice(0, start);
      assert.equal(await devices.personOf(asking(name + value)), null);
      const other = name + damaged(cookie.slice(start), how).replace(/[^\x20-\x7e]/g, "?");
      // A character that ends the value ends the cookie; whitespace around it is not part of it.
      if (other.trim() !== cookie) assert.equal(await devices.personOf(asking(other)), null);
    }),
  ));

// A segment of dots alone goes up, however it is escaped.
const user = wellFormedText.filter((text) => !/^\.{0,2}$/.test(text));

Deno.test("token: a filled URL names the user and the amount, and is otherwise unchanged", () =>
  always(
    300,
    fc.property(user, anyText.map((text) => text.toWellFormed()), (user, amount) => {
      const template = "https://shop.example/{project}/pay/{user}/now?u={user}&a={amount}#{user}";
      const url = new URL(fillTemplate(template, { user, project: "pw_1", amount }));
      const [, project, pay, named = "", ...rest] = url.pathname.split("/");
      assert.deepEqual([url.host, project, pay, rest], ["shop.example", "pw_1", "pay", ["now"]]);
      const decoded = [named, url.hash.slice(1)].map(decodeURIComponent);
      assert.deepEqual(decoded, [user, user]);
      assert.deepEqual([...url.searchParams], [["u", user], ["a", amount]]);
    }),
  ));

Deno.test("token: a value in a URL cannot choose where it leads", async () => {
  using world = await createWorld();
  const path = `/v1/admin/projects/${world.projectId}`;
  const pieces = fc.constantFrom(
    ...["https://", "http://", "javascript:", "shop.example", "a@b", ":8443", "/", "//", "\\", "?"],
    ...["#", "x=", "&", "{user}", "{amount}", "{project}", "{", "}", "%", " ", "..", ".", "é"],
  );
  const template = fc.oneof(
    fc.array(pieces, { maxLength: 8 }).map((parts) => parts.join("")),
    fc.array(pieces, { maxLength: 6 }).map((parts) => `https://shop.example${parts.join("")}`),
    anyText,
  );
  let taken = 0;
  await always(
    250,
    fc.asyncProperty(template, user, user, async (topUpUrl, one, other) => {
      const options = { method: "PATCH", key: adminKey, body: { topUpUrl } };
      const { status, body } = await world.json(path, options);
      if (status !== 200) return assert.equal(status, 400, JSON.stringify(body));
      taken++;
      const values = { project: world.projectId, amount: "5" };
      const [first, second] = [one, other].map((user) =>
        new URL(fillTemplate(topUpUrl, { user, ...values }))
      );
      assert.match(first?.protocol ?? "", /^https?:$/);
      assert.equal(first?.origin, second?.origin);
      assert.equal(first?.username, "");
    }),
  );
  assert.ok(taken > 20, `${taken} templates were taken`);
});
