import assert from "node:assert/strict";
import fc from "fast-check";
import {
  always,
  anyText,
  headerValue,
  jsonText,
  spoiled,
  wellFormedText,
} from "../support/property.ts";
import { allow, Device, linkFor, pathOf, sharedWorld } from "../support/wallets.ts";
import { adminKey, createWorld, type World } from "../support/world.ts";

/** Responses of browsers for a passkey. */
const registration = {
  id: "AAAA",
  rawId: "AAAA",
  type: "public-key",
  response: {
    clientDataJSON: btoa(
      '{"type":"webauthn.create","challenge":"AAAA","origin":"https://farebox.test"}',
    )
      .replace(/=+$/, ""),
    attestationObject: "o2NmbXRkbm9uZQ",
    transports: ["internal"],
  },
  clientExtensionResults: {},
};
const signIn = {
  id: "AAAA",
  rawId: "AAAA",
  type: "public-key",
  response: {
    clientDataJSON: registration.response.clientDataJSON,
    authenticatorData: "AAAA",
    signature: "AAAA",
    userHandle: "AAAA",
  },
  clientExtensionResults: {},
};

/** An error page shows nothing internal. */
function checkLogged(world: World, told: string): void {
  const faults = world.logged.filter(({ level }) => level === "error");
  assert.deepEqual(faults, [], told);
}

Deno.test("page: any passkey response of a browser is accepted or refused, and never fails", async () => {
  using world = await sharedWorld();
  const device = new Device(world);
  await allow(device);
  const paths = [
    "/wallet/passkeys/options",
    "/wallet/passkeys",
    "/wallet/sign-in/options",
    "/wallet/sign-in",
  ];
  const body = fc.oneof(
    spoiled(registration),
    spoiled(signIn),
    jsonText,
    fc.tuple(fc.constantFrom("k", "€", "-", "\u0000"), fc.nat(1_500)).map(([text, times]) =>
      JSON.stringify({ ...signIn, id: text.repeat(times) })
    ),
  );
  await always(
    150,
    fc.asyncProperty(fc.constantFrom(...paths), body, fc.boolean(), async (path, raw, known) => {
      const headers = known && device.cookie ? { cookie: device.cookie } : {};
      const response = await world.call(path, { raw, key: null, headers });
      const told = `${path} ${response.status} ${await response.text()}`;
      assert.ok(response.status < 500, told.slice(0, 500));
      if (!path.endsWith("/options")) assert.ok(response.status >= 400, "none of them fits");
      checkLogged(world, told);
    }),
  );
});

const fieldName = fc.oneof(
  fc.constantFrom("action", "cap", "projectId", "user", "decision", "amount", "formId"),
  anyText,
);
const fieldValue = fc.oneof(
  fc.constantFrom(
    "revoke",
    "cap",
    "leave",
    "approve",
    "decline",
    "5",
    "0",
    "-1",
    "1e9",
    "10,5",
    " 5 ",
  ),
  fc.constantFrom("form_00000000000000000000000001", "pw_00000000000000000000000001", "ada"),
  anyText,
);
/** A form with any fields, most of them ours. */
const form = fc.array(fc.tuple(fieldName, fieldValue), { maxLength: 6 })
  .map((fields) => new URLSearchParams(fields).toString());

async function postForm(world: World, path: string, raw: string, headers = {}) {
  world.logged.length = 0;
  const response = await world.call(path, {
    key: null,
    raw,
    headers: {
      "content-type": "application/x-www-form-urlencoded",
      "content-length": `${raw.length}`,
      ...headers,
    },
  });
  const told = `${path} ${response.status} ${(await response.text()).slice(-300)}`;
  assert.ok(response.status < 500, told);
  checkLogged(world, told);
  return response;
}

Deno.test("page: any form of a wallet is processed or refused, and never fails", async () => {
  using world = await sharedWorld();
  const device = new Device(world);
  await allow(device);
  const action = fc.record({
    action: fc.constantFrom("revoke", "cap", "leave"),
    projectId: fc.oneof(fc.constant(world.projectId), fc.constant("k".repeat(2_500)), anyText),
    user: fc.oneof(fc.constant("ada"), fc.constant("k".repeat(2_500)), anyText),
    cap: fieldValue,
  }).map((fields) => new URLSearchParams(fields).toString());
  await always(
    120,
    fc.asyncProperty(fc.oneof(form, action), async (raw) => {
      await postForm(world, "/wallet", raw, { cookie: device.cookie ?? "" });
      const shown = await device.get("/wallet");
      assert.equal(shown.status, 200);
    }),
  );
});

Deno.test("page: any form of an authorization request is decided or refused, and never fails", async () => {
  using world = await sharedWorld();
  let users = 0;
  await always(
    140,
    fc.asyncProperty(form, async (raw) => {
      const path = await linkFor(world, `user${++users}`);
      const response = await postForm(world, path, raw);
      const decided = response.status === 303;
      assert.ok(
        decided || response.status === 400 || response.status === 413,
        `${response.status}`,
      );
    }),
  );
});

Deno.test("page: any form of the top-up page redirects or is refused, wherever the project sells", async () => {
  using world = await createWorld();
  const path = `/v1/admin/projects/${world.projectId}`;
  const formId = "form_00000000000000000000000001";
  const right = fc.constant(new URLSearchParams({ amount: "5", formId }).toString());
  const template = fc.oneof(
    wellFormedText.map((text) => `https://shop.example/${text}?u={user}&a={amount}`),
    anyText.map((text) => `https://shop.example/#${text}`),
    fc.constantFrom("https://münchen.example/{user}", "https://shop.example/€/{user}"),
  );
  let led = 0;
  await always(
    100,
    fc.asyncProperty(template, fc.oneof(right, form), async (checkoutUrl, raw) => {
      const options = { method: "PATCH", key: adminKey, body: { topUp: { checkoutUrl } } };
      const { status } = await world.json(path, options);
      if (status !== 200) return assert.equal(status, 400);
      const { body } = await world.json("/v1/user/balance/topup?user=ada");
      const page = pathOf(body.url);
      assert.equal((await world.call(page, { key: null })).status, 200);
      const response = await postForm(world, page, raw);
      if (response.status !== 303) return;
      led++;
      assert.equal(new URL(response.headers.get("location") ?? "").protocol, "https:");
    }),
  );
  assert.ok(led > 20, `${led} led on`);
});

Deno.test("page: no token, cookie or path makes a page fail", async () => {
  using world = await createWorld();
  const kind = fc.constantFrom("/topup/", "/authorize/", "/wallet/", "/", "/v1/models/", "/v1/");
  const segment = fc.oneof(
    wellFormedText,
    fc.constantFrom("%", "%ff", "%00", "%c3%28", "..%2f..", "%2e%2e", "%zz", "a/b/c", "//", "."),
  );
  await always(
    300,
    fc.asyncProperty(kind, segment, headerValue, async (start, text, cookie) => {
      for (const rest of [encodeURIComponent(text), text.replace(/[^!-~]|[#?]/g, "")]) {
        const headers = { cookie };
        const response = await world.call(start + rest, { headers });
        const told = `${start}${rest} ${response.status} ${(await response.text()).slice(0, 300)}`;
        assert.ok(response.status < 500, told);
        checkLogged(world, told);
      }
    }),
  );
});
