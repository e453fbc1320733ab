import assert from "node:assert/strict";
import { devApiKey } from "../../src/base/dev_keys.ts";
import { devProjectId } from "../../src/projects/auth.ts";
import { devProject } from "../../src/projects/dev_project.ts";
import { signedTopUpToken } from "../support/links.ts";
import { storeAsText } from "../support/books.ts";
import { createWorld, type World } from "../support/world.ts";

const weekMs = 7 * 24 * 60 * 60 * 1000;

/** The path of the hosted page for a user. */
async function pathFor(world: World, user: string): Promise<string> {
  const path = `/v1/user/balance/topup?user=${encodeURIComponent(user)}`;
  const { body } = await world.json(path, { key: world.apiKey || devApiKey });
  return new URL(body.url).pathname;
}

async function open(world: World, path: string) {
  const response = await world.call(path, { key: null });
  return { status: response.status, headers: response.headers, html: await response.text() };
}

function send(world: World, path: string, form: Record<string, string>): Promise<Response> {
  const raw = new URLSearchParams(form).toString();
  return world.call(path, {
    key: null,
    raw,
    headers: {
      "content-type": "application/x-www-form-urlencoded",
      "content-length": String(raw.length),
    },
  });
}

async function devWorld(): Promise<World> {
  const world = await createWorld({ dev: true });
  await world.app.admin.ensure(devProjectId, devProject);
  return world;
}

async function devBalance(world: World, user: string): Promise<string> {
  const path = `/v1/user/balance?user=${encodeURIComponent(user)}`;
  return (await world.json(path, { key: devApiKey })).body.balance;
}

const formIdOf = (html: string) => /name="formId" value="([^"]+)"/.exec(html)?.[1] ?? "";

Deno.test("paywall page: shows its user's balance, is not cached and loads nothing", async () => {
  using world = await createWorld();
  await world.deposit("ada", "12.345");
  const path = await pathFor(world, "ada");
  const before = await storeAsText(world);
  const { status, headers, html } = await open(world, path);
  assert.equal(status, 200);
  assert.match(headers.get("content-type") ?? "", /^text\/html; charset=utf-8$/);
  assert.equal(headers.get("cache-control"), "no-store");
  assert.equal(headers.get("referrer-policy"), "same-origin");
  const policy = headers.get("content-security-policy") ?? "";
  assert.match(policy, /default-src 'none'/);
  assert.match(policy, /frame-ancestors 'none'/);
  assert.match(html, /^<!doctype html>/);
  assert.match(html, /ada/);
  assert.match(html, /\$12\.34/);
  assert.doesNotMatch(html, /<form/);
  assert.equal(await storeAsText(world), before, "reading changes nothing");
});

Deno.test("paywall page: a user's id is shown as text, whatever it contains", async () => {
  using world = await createWorld({ project: { name: "<b>Shop</b>" } });
  const user = `<script>alert("1")</script>&'`;
  const { status, html } = await open(world, await pathFor(world, user));
  assert.equal(status, 200);
  assert.doesNotMatch(html, /<script>alert|<b>/);
  assert.match(html, /&lt;script&gt;/);
});

Deno.test("paywall page: a link is for one user of one project", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  await world.deposit("bob", "2");
  const [ada, bob] = [await pathFor(world, "ada"), await pathFor(world, "bob")];
  assert.notEqual(ada, bob);
  const [adas, bobs] = await Promise.all([
    signedTopUpToken(world, "ada"),
    signedTopUpToken(world, "bob"),
  ]);
  const [adasPayload, adasSignature] = adas.split(".");
  const [bobsPayload, bobsSignature] = bobs.split(".");
  const encode = (value: unknown) => btoa(JSON.stringify(value)).replace(/=+$/, "");
  const now = world.clock.now();
  const forged = [
    `${bobsPayload}.${adasSignature}`,
    `${adasPayload}.${bobsSignature}`,
    `${adasPayload}.`,
    `${adasPayload}`,
    `.${adasSignature}`,
    ".",
    `${encode([world.projectId, "bob", now + weekMs])}.${adasSignature}`,
    `${adasPayload}.${adasSignature}x`,
    `x${adasPayload}.${adasSignature}`,
    `${adasPayload}.${adasSignature?.slice(0, -2)}`,
    "%ff.%ff",
    "a".repeat(5000),
    ada.slice("/t/".length, -1),
    `${ada.slice("/t/".length)}x`,
    "0".repeat(17),
  ];
  for (const token of forged) {
    for (const path of [`/topup/${token}`, `/t/${token}`]) {
      const { status, html } = await open(world, path);
      assert.equal(status, 404, path.slice(0, 80));
      assert.doesNotMatch(html, /ada|bob|\$/);
    }
  }
  assert.equal((await open(world, ada)).status, 200);
  assert.match((await open(world, `/topup/${adas}`)).html, /Account: <bdi>ada/);
  await world.clock.advance(weekMs);
  assert.equal((await open(world, `/topup/${adas}`)).status, 404);
});

Deno.test("paywall page: another server's link is forged here", async () => {
  using world = await createWorld();
  using other = await createWorld({
    env: { SECRETS_KEY: btoa("another key of thirty-two bytes!") },
  });
  assert.equal((await open(world, await pathFor(other, "ada"))).status, 404);
});

Deno.test("paywall page: a link expires after a week", async () => {
  using world = await createWorld();
  const path = await pathFor(world, "ada");
  await world.clock.advance(weekMs - 1);
  assert.equal((await open(world, path)).status, 200);
  await world.clock.advance(1);
  assert.equal((await open(world, path)).status, 404);
});

Deno.test("paywall page: in production without a checkout nothing can be paid on it", async () => {
  using world = await createWorld();
  const path = await pathFor(world, "ada");
  const before = await storeAsText(world);
  const response = await send(world, path, { amount: "5", formId: "f-1" });
  assert.equal(response.status, 405);
  assert.equal(response.headers.get("allow"), "GET, HEAD");
  assert.equal(await storeAsText(world), before);
});

Deno.test("paywall page: development's checkout deposits once for each page, however often it is sent", async () => {
  using world = await devWorld();
  const path = await pathFor(world, "ada");
  const { html } = await open(world, path);
  const form = { amount: "5", formId: formIdOf(html) };
  assert.notEqual(form.formId, "");
  const answers = await Promise.all([1, 2, 3].map(() => send(world, path, form)));
  answers.push(await send(world, path, form));
  for (const response of answers) {
    assert.equal(response.status, 303);
    assert.equal(response.headers.get("location"), `${path}?paid=yes`);
  }
  assert.equal(await devBalance(world, "ada"), "5");
  const second = formIdOf((await open(world, path)).html);
  assert.notEqual(second, form.formId);
  await send(world, path, { amount: "10", formId: second });
  assert.equal(await devBalance(world, "ada"), "15");
});

Deno.test("paywall page: development's checkout deposits each amount of a page that someone went back to", async () => {
  using world = await devWorld();
  const path = await pathFor(world, "ada");
  const formId = formIdOf((await open(world, path)).html);
  for (const amount of ["5", "10", "5.00", "10"]) {
    assert.equal((await send(world, path, { amount, formId })).status, 303, amount);
  }
  assert.equal(await devBalance(world, "ada"), "15");
});

Deno.test("paywall page: the checkout accepts amounts within its range, for its own user, and nothing else", async () => {
  using world = await devWorld();
  const path = await pathFor(world, "ada");
  const before = await storeAsText(world);
  const formId = formIdOf((await open(world, path)).html);
  const forms: [form: Record<string, string>, status: number][] = [
    [{ formId }, 400],
    [{ formId, amount: "" }, 400],
    [{ formId, amount: "0.99" }, 400],
    [{ formId, amount: "1000.01" }, 400],
    [{ formId, amount: "-5" }, 400],
    [{ formId, amount: "5e0" }, 400],
    [{ formId, amount: "five" }, 400],
    [{ formId: "f", amount: "5" }, 400],
    [{ amount: "5" }, 400],
    [{ formId: "x".repeat(5000), amount: "5" }, 413],
  ];
  for (const [form, status] of forms) {
    const response = await send(world, path, form);
    const told = await response.text();
    assert.equal(response.status, status, JSON.stringify(form).slice(0, 80));
    assert.match(told, /role="alert">Choose an amount from|<h1>Something went wrong<\/h1>/);
  }
  assert.equal((await send(world, `${path}x`, { formId, amount: "5" })).status, 404);
  assert.equal(await storeAsText(world), before);
  await send(world, path, { formId, amount: "7,50", user: "bob" });
  assert.equal(await devBalance(world, "ada"), "7.5");
  assert.equal(await devBalance(world, "bob"), "0");
});

const origins: [origin: string | null, status: number][] = [
  [null, 303],
  ["https://farebox.test", 303],
  ["http://localhost", 303],
  ["http://farebox.test", 403],
  ["http://farebox.test:443", 403],
  ["https://farebox.test:80", 403],
  ["ftp://localhost", 403],
  ["http://localhost:81", 403],
  ["https://farebox.test.evil.example", 403],
  ["https://evil.example", 403],
  ["null", 403],
];

Deno.test("paywall page: a form without Sec-Fetch-Site must come from our origin, or from no page", async () => {
  const checkoutUrl = "https://my.app/pay";
  using world = await createWorld({ project: { topUp: { checkoutUrl } } });
  const path = await pathFor(world, "ada");
  const formId = formIdOf((await open(world, path)).html);
  for (const [origin, status] of origins) {
    const headers = {
      "content-type": "application/x-www-form-urlencoded",
      ...(origin === null ? {} : { origin }),
    };
    const raw = new URLSearchParams({ amount: "5", formId }).toString();
    const response = await world.call(path, { key: null, raw, headers });
    assert.equal(response.status, status, `${origin}`);
  }
});

Deno.test("paywall page: a form sent by another site is refused", async () => {
  using world = await devWorld();
  const path = await pathFor(world, "ada");
  const formId = formIdOf((await open(world, path)).html);
  const raw = new URLSearchParams({ formId, amount: "5" }).toString();
  for (const site of ["cross-site", "same-site"]) {
    const headers = {
      "content-type": "application/x-www-form-urlencoded",
      "content-length": String(raw.length),
      "sec-fetch-site": site,
    };
    assert.equal((await world.call(path, { key: null, raw, headers })).status, 403, site);
  }
  assert.equal(await devBalance(world, "ada"), "0");
});

Deno.test("paywall page: shows the last fifty activities, newest first", async () => {
  using world = await createWorld();
  for (let n = 1; n <= 55; n++) await world.deposit("ada", `${n}`);
  const { html } = await open(world, await pathFor(world, "ada"));
  const shown = [...html.matchAll(/\+<span title="(\d+) USD">/g)].map(([, amount]) =>
    Number(amount)
  );
  assert.deepEqual(shown, Array.from({ length: 50 }, (_, n) => 55 - n));
});

Deno.test("paywall page: the owner's own checkout gets the amount, the user and the project", async () => {
  const checkoutUrl = "https://my.app/pay?u={user}&p={project}&a={amount}";
  using world = await createWorld({ project: { topUp: { amounts: ["3"], checkoutUrl } } });
  const path = await pathFor(world, "ada & bob");
  const { html, headers } = await open(world, path);
  assert.match(html, /value="3" checked/);
  assert.match(headers.get("content-security-policy") ?? "", /form-action 'self' https:;/);
  const response = await send(world, path, { amount: "3", formId: formIdOf(html) });
  assert.equal(response.status, 303);
  const expected = `https://my.app/pay?u=ada%20%26%20bob&p=${world.projectId}&a=3`;
  assert.equal(response.headers.get("location"), expected);
});

Deno.test("paywall page: each offered amount works, whatever range may be typed", async () => {
  const checkoutUrl = "https://my.app/pay?a={amount}";
  const topUp = { amounts: ["5", "500"], min: "10", max: "100", checkoutUrl };
  using world = await createWorld({ project: { topUp } });
  const path = await pathFor(world, "ada");
  const { html } = await open(world, path);
  const formId = formIdOf(html);
  for (const amount of ["5", "500", "10", "100"]) {
    const response = await send(world, path, { amount, formId });
    assert.equal(response.headers.get("location"), `https://my.app/pay?a=${amount}`);
  }
  for (const amount of ["6", "9.99", "101", "0"]) {
    const response = await send(world, path, { amount, formId });
    assert.equal(response.status, 400, amount);
    assert.match(await response.text(), /Choose an amount from \$10\.00 to \$100\.00/);
  }
});

Deno.test("paywall page: the link back from an error is below the server's own path", async () => {
  using world = await createWorld({
    env: { BASE_URL: "https://shop.example.com/pay/" },
    project: { topUp: { checkoutUrl: "https://shop.example.com/buy?a={amount}" } },
  });
  const path = (await pathFor(world, "ada")).replace("/pay", "");
  const refused = await send(world, path, { formId: "none", amount: "5" });
  assert.equal(refused.status, 400);
  assert.ok((await refused.text()).includes(`<a href="/pay${path}">Back</a>`));
  const wallet = await send(world, "/wallet", { action: "revoke" });
  assert.match(await wallet.text(), /<a href="\/pay\/wallet">Back/);
});
