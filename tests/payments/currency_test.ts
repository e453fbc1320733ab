import assert from "node:assert/strict";
import { payableIn, payableTopUp, usualTopUp } from "../../src/projects/currency.ts";
import { fromDecimal, toAmount } from "../../src/base/money.ts";
import { toStripeUnits } from "../../src/payments/stripe.ts";
import { projectKey } from "../../src/store/keys.ts";
import { textOf } from "../support/console.ts";
import { ownerStripe } from "../support/payments.ts";
import { edit } from "../support/verify.ts";
import { Device, env, pathOf } from "../support/wallets.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

const currencies = Intl.supportedValuesOf("currency").map((code) => code.toLowerCase());
const stripe = ownerStripe;

async function openPage(world: World) {
  const { body } = await world.json("/v1/user/balance/topup?user=ada");
  const [device, path] = [new Device(world), pathOf(body.url)];
  const { html } = await device.get(path);
  const formId = /name="formId" value="([^"]+)"/.exec(html)?.[1] ?? "";
  const amounts = [...html.matchAll(/name="amount" value="([^"]+)"/g)].map(([, value]) => value);
  return {
    text: textOf(html),
    amounts,
    choose: (amount: string) => device.post(path, { amount, formId }),
  };
}

const create = (world: World, body: Body) =>
  world.json("/v1/admin/projects", { key: adminKey, body: { name: "x", ...body } });

Deno.test("currency: the usual amounts of every currency can be paid at Stripe and elsewhere", () => {
  for (const currency of currencies) {
    const { amounts, min, max } = usualTopUp(currency);
    for (const isStripe of [true, false]) {
      const { step, minimum } = payableIn(currency, isStripe);
      for (const amount of [...amounts, min, max].map(fromDecimal)) {
        assert.ok(amount >= minimum && amount % step === 0n, `${currency} ${amount}`);
        assert.ok(!isStripe || toStripeUnits(toAmount(amount), currency) !== null, currency);
      }
      assert.deepEqual(payableTopUp({ amounts, min, max }, currency, isStripe), {
        amounts,
        min,
        max,
      });
    }
    assert.ok(amounts.every((amount) => fromDecimal(amount) >= fromDecimal(min)), currency);
  }
  assert.deepEqual(usualTopUp("usd"), { amounts: ["5", "10", "25"], min: "1", max: "1000" });
});

/** https://docs.stripe.com/currencies: all that can be charged, by how many are about a dollar. */
const chargeable: [perDollar: number, currencies: string][] = [
  [0.3, "kwd"],
  [0.4, "bhd omr"],
  [0.7, "jod"],
  [0.8, "chf fkp gbp gip kyd shp"],
  [0.9, "eur"],
  [1, "usd bmd bnd bsd cad pab sgd"],
  [2, "ang aud awg azn bam bbd bgn bzd fjd nzd top xcg"],
  [3, "byn gel ils pen tnd wst xcd"],
  [4, "aed myr pgk pln qar ron sar"],
  [6, "brl dkk"],
  [7, "bob cny hrk ttd"],
  [8, "gtq hkd mop sbd"],
  [9, "mad sek svc tjs"],
  [10, "bwp ghs nok scr"],
  [20, "czk lsl mdl mvr mxn nad sle stn szl zar zmw"],
  [30, "hnl thb twd"],
  [40, "nio srd try uah uyu"],
  [50, "egp mkd mur"],
  [60, "dop mzn php"],
  [70, "afn gmd"],
  [80, "all rub"],
  [90, "inr kgs"],
  [100, "bdt cve dzd etb htg isk kes npr rsd vuv xpf"],
  [200, "djf gyd jmd jpy lrd yer"],
  [300, "huf lkr pkr"],
  [400, "amd kmf"],
  [500, "crc kzt"],
  [600, "sos xaf xof"],
  [900, "aoa"],
  [1000, "ars clp krw ngn rwf"],
  [2000, "mmk mwk tzs"],
  [3000, "bif cdf ugx"],
  [4000, "cop khr mga mnt"],
  [7000, "pyg"],
  [9000, "gnf"],
  [10000, "uzs"],
  [20000, "idr lak sll std"],
  [30000, "vnd"],
  [90000, "lbp"],
];
for (const [perDollar, listed] of chargeable) {
  Deno.test(`currency: about ${perDollar} to the dollar: the usual amounts can be paid, and reach some hundred dollars`, () => {
    for (const currency of listed.split(" ")) {
      const { amounts, min, max } = usualTopUp(currency);
      const dollarsOf = (amount: string) => Number(amount) / perDollar;
      for (const amount of [...amounts, min]) {
        const dollars = dollarsOf(amount);
        assert.ok(dollars >= 0.4 && dollars <= 100, `${currency} ${amount} is $${dollars}`);
      }
      assert.ok(amounts.every((amount) => dollarsOf(amount) > 0.5), `${currency} ${amounts}`);
      const most = dollarsOf(max);
      assert.ok(most >= 250 && most <= 4_000, `${currency} ${max} is $${most}`);
      // https://docs.stripe.com/api/charges: eight digits, and twelve for IDR.
      const units = amounts.map((amount) => toStripeUnits(fromDecimal(amount), currency) ?? NaN);
      assert.ok(units.every((each) => each <= 99_999_999), `${currency} ${units}`);
    }
  });
}

const finer: [currency: string, topUp: Body, field: string][] = [
  ["jpy", { amounts: ["500", "1000.5"] }, "topUp.amounts"],
  ["jpy", { min: "0.5" }, "topUp.min"],
  ["jpy", { max: "99999.9" }, "topUp.max"],
  ["krw", { amounts: ["5000.1"] }, "topUp.amounts"],
  ["usd", { amounts: ["5.005"] }, "topUp.amounts"],
  ["usd", { min: "1.001" }, "topUp.min"],
  ["kwd", { amounts: ["5.0001"] }, "topUp.amounts"],
];
for (const [currency, topUp, field] of finer) {
  Deno.test(`currency: ${JSON.stringify(topUp)} is finer than ${currency}, and not saved`, async () => {
    using world = await createWorld();
    for (const keys of [null, stripe]) {
      const { status, body } = await create(world, { currency, topUp, stripe: keys });
      assert.deepEqual([status, body.error.param], [400, field], JSON.stringify(body));
      assert.match(body.error.message, /finer than/);
    }
    const made = await create(world, { currency });
    const path = `/v1/admin/projects/${made.body.project.id}`;
    const changed = await world.json(path, { method: "PATCH", key: adminKey, body: { topUp } });
    assert.deepEqual([changed.status, changed.body.error.param], [400, field]);
  });
}

Deno.test("currency: what Stripe does not take is refused where Stripe takes the payment, else saved", async () => {
  using world = await createWorld({ env });
  const shared = { mode: "shared" };
  for (
    const [currency, topUp, field] of [
      ["jpy", { amounts: ["5"] }, "topUp.amounts"],
      ["jpy", { min: "1" }, "topUp.min"],
      ["usd", { min: "0.49" }, "topUp.min"],
      ["kwd", { amounts: ["5.005"] }, "topUp.amounts"],
      ["ugx", { amounts: ["5000.5"] }, "topUp.amounts"],
    ] as const
  ) {
    for (const more of [{ stripe }, shared]) {
      const { status, body } = await create(world, { currency, topUp, ...more });
      assert.deepEqual([status, body.error.param], [400, field], JSON.stringify(body));
    }
  }
  const made = await create(world, { currency: "jpy", topUp: { amounts: ["5"], min: "1" } });
  assert.equal(made.status, 201, "a checkout of one's own may take it");
  const path = `/v1/admin/projects/${made.body.project.id}`;
  const { status, body } = await world.json(path, {
    method: "PATCH",
    key: adminKey,
    body: { stripe },
  });
  assert.deepEqual([status, body.error.param], [400, "topUp.amounts"]);
  assert.match(body.error.message, /Stripe takes at least 50 JPY/);
  const both = { stripe, topUp: { amounts: ["500"], min: null } };
  const { body: changed } = await world.json(path, { method: "PATCH", key: adminKey, body: both });
  assert.partialDeepStrictEqual(changed.project.topUp, { amounts: ["500"], min: "100" });
});

for (
  const [currency, good, bad] of [
    ["jpy", "500", ["5", "500.5", "0.5"]],
    ["kwd", "5.12", ["5.125", "5.0001"]],
    ["usd", "5.5", ["5.505", "0.3"]],
    ["isk", "500", ["500.5"]],
  ] as const
) {
  Deno.test(`currency: the page in ${currency} offers and takes what can be paid`, async () => {
    using world = await createWorld({ project: { currency, stripe } });
    const { amounts, choose } = await openPage(world);
    for (const amount of [...amounts, good]) {
      assert.equal((await choose(amount ?? "")).status, 303, amount);
    }
    for (const amount of bad) {
      const { status, html } = await choose(amount);
      assert.equal(status, 400, amount);
      assert.match(html, /Choose an amount/);
    }
  });
}

Deno.test("currency: a project with amounts that Stripe does not take offers what can be paid, and can be changed", async () => {
  using world = await createWorld({ project: { currency: "jpy", stripe } });
  const topUp = { amounts: ["5", "10", "25"], min: "1", max: "1000", checkoutUrl: null };
  await edit<Body>(world, projectKey(world.projectId), (stored) => ({ ...stored, topUp }));
  await world.clock.advance(2_000);
  const { amounts, text, choose } = await openPage(world);
  assert.deepEqual(amounts, ["500", "1000"]);
  assert.match(text, /Another amount, ¥50 to ¥1,000/);
  assert.equal((await choose("5")).status, 400);
  assert.equal((await choose("60")).status, 303);
  const path = `/v1/admin/projects/${world.projectId}`;
  const change = (body: Body) => world.json(path, { method: "PATCH", key: adminKey, body });
  const renamed = await change({ name: "Renamed", topUp });
  assert.deepEqual([renamed.status, renamed.body.project.topUp], [200, topUp]);
  assert.equal((await change({ topUp: { ...topUp, max: "900" } })).status, 400);
});
