import assert from "node:assert/strict";
import { isReachedByStripe } from "../../src/payments/test_mode.ts";
import { signedIn, textOf } from "../support/console.ts";
import { ownerStripe } from "../support/payments.ts";
import { Device, pathOf } from "../support/wallets.ts";
import { adminKey, createWorld } from "../support/world.ts";

const live = { ...ownerStripe, secretKey: "sk_live_of_the_owner" };
const unreached = { BASE_URL: "http://localhost:8000" };
const cases: [label: string, stripe: typeof live, env: Record<string, string>, marks: Marks][] = [
  ["a live key", live, {}, { isTest: false, isUnreached: false }],
  ["a test key", ownerStripe, {}, { isTest: true, isUnreached: false }],
  ["a live key and a local URL", live, unreached, { isTest: false, isUnreached: true }],
  ["a restricted test key and a private URL", { ...live, secretKey: "rk_test_of_the_owner" }, {
    BASE_URL: "https://farebox.internal",
  }, { isTest: true, isUnreached: true }],
];

interface Marks {
  isTest: boolean;
  isUnreached: boolean;
}

for (const [label, stripe, env, { isTest, isUnreached }] of cases) {
  Deno.test(`payments with ${label}: what is not real is marked on every page, while it is true`, async () => {
    using world = await createWorld({ project: { stripe }, env });
    const owner = await signedIn(world);
    const place = `/console/projects/${world.projectId}`;
    const pages = { "": "overview", "/payments": "payments" };
    const look = async (expected: Marks) => {
      for (const [path, name] of Object.entries(pages)) {
        const { html } = await owner.get(place + path);
        assert.equal(
          /class="bar".*Stripe test mode.*<\/header>/s.test(html),
          expected.isTest,
          name,
        );
        const text = textOf(html.slice(html.indexOf("<main")));
        assert.equal(/Stripe is in test mode/.test(text), expected.isTest, name);
        assert.equal(/Stripe cannot reach this server/.test(text), expected.isUnreached, name);
      }
      const { body } = await world.json("/v1/user/balance/topup?user=ada");
      const { html } = await new Device(world).get(pathOf(body.url));
      assert.equal(/test mode: no real money/.test(textOf(html)), expected.isTest);
    };
    await look({ isTest, isUnreached });
    const path = `/v1/admin/projects/${world.projectId}`;
    await world.json(path, { method: "PATCH", key: adminKey, body: { stripe: live } });
    await world.clock.advance(2_000);
    await look({ isTest: false, isUnreached });
  });
}

Deno.test("payments: connecting a test key does not say that users can pay now", async () => {
  using world = await createWorld({ env: {} });
  const owner = await signedIn(world);
  const page = `/console/projects/${world.projectId}/payments`;
  await owner.post(page, { secretKey: ownerStripe.secretKey });
  const { html } = await owner.get(`${page}?flash=stripe-unready`);
  assert.match(textOf(html), /Stripe is connected, in test mode/);
  assert.match(textOf(html), /cannot pay real money yet/);
});

const urls: [baseUrl: string, dev: boolean, isReached: boolean][] = [
  ["https://farebox.example", false, true],
  ["https://203.0.113.7", false, true],
  ["http://farebox.example", false, false],
  ["http://localhost:8000", false, false],
  ["https://localhost", false, false],
  ["https://10.1.2.3", false, false],
  ["https://[::1]:8000", false, false],
  ["https://farebox.local", false, false],
  ["https://farebox", false, false],
  ["http://localhost:8000", true, true],
];
for (const [baseUrl, dev, isReached] of urls) {
  const where = dev ? "in development" : "in production";
  Deno.test(`payments: Stripe ${isReached ? "reaches" : "cannot reach"} ${baseUrl} ${where}`, () => {
    assert.equal(isReachedByStripe({ baseUrl, dev }), isReached);
  });
}
