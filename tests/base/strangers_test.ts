import assert from "node:assert/strict";
import { networkOf } from "../../src/base/client_address.ts";
import { strangersBodyDeadlineMs } from "../../src/base/limits.ts";
import { sharedBudgets, sizesOf } from "../../src/base/shared_budgets.ts";
import { settle } from "../support/clock.ts";
import { Visitor } from "../support/console.ts";
import { ownerStripe } from "../support/payments.ts";
import { metricsToken, scrape } from "../support/prometheus.ts";
import { allow, Device, env as walletEnv, openSession, tellServer } from "../support/wallets.ts";
import { adminKey, createWorld, type World } from "../support/world.ts";

const form = { "content-type": "application/x-www-form-urlencoded" };
const json = { "content-type": "application/json" };
const signed = { ...json, "stripe-signature": `t=1767225600,v1=${"a".repeat(64)}` };

/** Every route that reads a body of senders it does not know, and the group of its places. */
const posts: [path: string, headers: Record<string, string>, group: string][] = [
  ["/v1/stripe", signed, "stripe"],
  ["/v1/stripe/pw_0", signed, "stripe"],
  ["/console/sign-in", form, "consoleSignIn"],
  ["/t/:token", form, "topUps"],
  ["/a/x", form, "wallets"],
  ["/authorize/x", form, "wallets"],
  ["/wallet", form, "wallets"],
  ["/wallet/passkeys/options", json, "wallets"],
  ["/wallet/passkeys", json, "wallets"],
  ["/wallet/sign-in/options", json, "wallets"],
  ["/wallet/sign-in", json, "wallets"],
];

const stripeEnv = { STRIPE_SECRET_KEY: "sk_test_x", STRIPE_WEBHOOK_SECRET: "whsec_x" };
const attacker = "203.0.113.9";
const other = "198.51.100.7";

/** Posts from an address; the body never ends, and has sent one byte where it drips. */
function post(
  world: World,
  path: string,
  { from, headers, drips = false, raw }: {
    from: string;
    headers: Record<string, string>;
    drips?: boolean;
    raw?: string;
  },
): Promise<Response> {
  const body = raw ?? new ReadableStream<Uint8Array>({
    start: (controller) => drips ? controller.enqueue(new Uint8Array([0x7b])) : undefined,
  });
  const request = new Request(`https://farebox.test${path}`, { method: "POST", body, headers });
  return Promise.resolve(world.app.fetch(request, { remoteAddr: { hostname: from } }));
}

/** The path, with the link of a user whose page it is. */
async function pathIn(world: World, path: string): Promise<string> {
  if (!path.startsWith("/t/")) return path;
  const { body } = await world.json("/v1/user/balance/topup?user=ada");
  return new URL(body.url).pathname;
}

/** The statuses of what has been answered so far. */
function watch(answers: readonly Promise<Response>[]): number[] {
  const statuses: number[] = [];
  for (const answer of answers) {
    void answer.then((response) => {
      statuses.push(response.status);
      return response.body?.cancel();
    });
  }
  return statuses;
}

for (const [path, headers, group] of posts) {
  Deno.test(`strangers: one address that posts and sends nothing takes no place of another: ${path}`, async () => {
    const project = { stripe: ownerStripe };
    using world = await createWorld({ env: { REQUESTS_MAX: "320", ...stripeEnv }, project });
    const { each } = sizesOf(group as "stripe", 320);
    assert.equal(each, 4);
    const crowded = await pathIn(world, path);
    const silent = Array.from(
      { length: 300 },
      (_, n) => post(world, crowded, { from: attacker, headers, drips: n % 2 === 0 }),
    );
    const refused = watch(silent);
    await world.until(() => refused.length >= 296);
    assert.deepEqual(refused, Array(296).fill(503), "more than its share is refused at once");
    for (const [path, headers] of posts) {
      const { status, body } = await post(world, await pathIn(world, path), {
        from: other,
        headers,
        raw: "{}",
      });
      assert.notEqual(status, 503, path);
      await body?.cancel();
    }
    await world.clock.advance(strangersBodyDeadlineMs);
    await settle();
    assert.deepEqual(refused.slice(296), [408, 408, 408, 408]);
    const again = watch([post(world, crowded, { from: attacker, headers, raw: "{}" })]);
    await settle();
    assert.notEqual(again[0], 503, "there is a place again");
    assert.deepEqual(world.logged.filter(({ level }) => level === "error"), []);
    assert.ok(world.logged.length < 100, "noise is no flood of lines either");
  });
}

for (const [crowded, headers, group] of posts.filter((_, n) => [0, 2, 3, 7].includes(n))) {
  Deno.test(`strangers: many addresses that fill ${group} leave all other places to others`, async () => {
    using world = await createWorld({
      env: { REQUESTS_MAX: "320", METRICS_TOKEN: metricsToken, ...walletEnv },
      project: { mode: "shared" },
    });
    await allow(new Device(world));
    const session = await openSession(world, { user: "ada", amount: "10" });
    const path = await pathIn(world, crowded);
    const crowd = Array.from(
      { length: 300 },
      (_, n) => post(world, path, { from: `10.1.${n >> 8}.${n & 255}`, headers }),
    );
    const refused = watch(crowd);
    await world.until(() => refused.length >= 280);
    assert.equal(refused.length, 280);
    for (const [path, headers, itsGroup] of posts) {
      const { status, body } = await post(world, await pathIn(world, path), {
        from: other,
        headers,
        raw: "{}",
      });
      assert.equal(status === 503, itsGroup === group, path);
      await body?.cancel();
    }
    if (group !== "stripe") {
      const paid = { id: "evt_1", type: "checkout.session.completed" };
      const object = { ...session, payment_status: "paid" };
      const told = await tellServer(world, { ...paid, data: { object } });
      assert.equal(told.body.outcome, "booked");
    }
    if (group !== "consoleSignIn") await new Visitor(world).signIn(adminKey);
    for (const path of ["/", "/docs", "/docs/guides", "/openapi.json", "/healthz", "/readyz"]) {
      const { status, body } = await world.call(path, { key: null });
      assert.ok(status < 400, path);
      await body?.cancel();
    }
    assert.ok((await scrape(world)).series.size > 0);
  });
}

Deno.test("strangers: who does not read an answer keeps no place", async () => {
  using world = await createWorld({ env: { REQUESTS_MAX: "16", ...stripeEnv } });
  const unread: Response[] = [];
  for (let n = 0; n < 100; n++) {
    for (const path of ["/docs", "/openapi.json", "/console/sign-in", "/wallet"]) {
      const request = new Request(`https://farebox.test${path}`);
      unread.push(await world.app.fetch(request, { remoteAddr: { hostname: attacker } }));
    }
  }
  assert.ok(unread.every(({ status }) => status !== 503));
  for (const { body } of unread) await body?.cancel();
});

Deno.test("strangers: addresses of IPv6 count by their network of 64 bits", async () => {
  const same = ["2001:db8::1", "2001:0DB8:0:0:ffff::", "2001:db8:0:0:1:2:3:4"];
  assert.deepEqual([...new Set(same.map(networkOf))], ["2001:db8:0:0::/64"]);
  const others = ["2001:db8:0:1::1", "2001:db8:1::1", "::1", "fe80::1%eth0", "203.0.113.9"];
  const networks = ["2001:db8:0:1::/64", "2001:db8:1:0::/64", "0:0:0:0::/64", "fe80:0:0:0::/64"];
  assert.deepEqual(others.map(networkOf), [...networks, "203.0.113.9"]);
  assert.equal(networkOf(null), "unknown");

  using world = await createWorld({ env: { REQUESTS_MAX: "320", ...stripeEnv } });
  const path = "/wallet/passkeys/options";
  const from = (n: number) => `2001:db8::${n.toString(16)}`;
  const refused = watch(
    Array.from({ length: 20 }, (_, n) => post(world, path, { from: from(n + 1), headers: json })),
  );
  await settle();
  assert.deepEqual(refused, Array(16).fill(503));
  for (let n = 0; n < 12; n++) {
    const raw = "key=wrong";
    const { status } = await post(world, "/console/sign-in", {
      from: from(n + 1),
      headers: form,
      raw,
    });
    assert.equal(status, n < 10 ? 401 : 429, "failed attempts count likewise");
  }
});

Deno.test("strangers: clients behind a trusted proxy have shares of their own", async () => {
  using world = await createWorld({
    env: { REQUESTS_MAX: "320", TRUSTED_PROXIES: "10.0.0.1/32", ...stripeEnv },
  });
  const by = (client: string) => ({ ...json, "x-forwarded-for": `1.2.3.4, ${client}` });
  const path = "/wallet/sign-in/options";
  const refused = watch(
    Array.from(
      { length: 30 },
      () => post(world, path, { from: "10.0.0.1", headers: by(attacker) }),
    ),
  );
  await settle();
  assert.equal(refused.length, 26);
  const { status } = await post(world, path, { from: "10.0.0.1", headers: by(other), raw: "{}" });
  assert.notEqual(status, 503);
});

Deno.test("strangers: the table of shared budgets leaves callers most of both", () => {
  const rows = Object.values(sharedBudgets);
  const ofStrangers = rows.filter(({ each }) => each === "client address");
  for (const setting of ["REQUESTS_MAX", "BODIES_BYTES_MAX"]) {
    const taken = ofStrangers.filter((row) => row.of === setting).map(({ part }) => 1 / part);
    assert.ok(taken.reduce((sum, part) => sum + part, 0) <= 1 / 4, setting);
  }
  assert.deepEqual(sizesOf("stripe", 8), { all: 1, each: 1 });
  assert.deepEqual(sizesOf("stripe", 5_000), { all: 313, each: 40 });
  assert.deepEqual(sizesOf("calls", 5_000), { all: 5_000, each: 2_500 });
});
