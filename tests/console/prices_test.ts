import assert from "node:assert/strict";
import { fieldName, modelsMax } from "../../src/console/money/price_form.ts";
import { hiddenFields, signedIn, textOf } from "../support/console.ts";
import { operate } from "../support/webhooks.ts";
import { adminKey, createWorld } from "../support/world.ts";

const price = { input: "1", output: "2" };
const nameOf = (n: number) => `vendor-with-a-long-name/model-${String(n).padStart(40, "0")}`;

Deno.test("console: prices of more models than the page shows are kept, and none is set twice", async () => {
  const names = Array.from({ length: modelsMax + 2 }, (_, n) => nameOf(n));
  const models = Object.fromEntries(names.map((name) => [name, price]));
  using world = await createWorld({ project: { pricing: { models } } });
  const owner = await signedIn(world);
  const { html } = await owner.get("pricing");
  assert.match(textOf(html), /2 more models are not shown/);
  const form = { ...hiddenFields(html, "/pricing"), action: "save" };
  names.slice(0, modelsMax).forEach((name, at) => {
    Object.assign(form, {
      [fieldName(at, "was")]: name,
      [fieldName(at, "name")]: name,
      [fieldName(at, "input")]: "3",
      [fieldName(at, "output")]: "4",
    });
  });
  const another = (name: string) => ({
    ...form,
    [fieldName(modelsMax, "name")]: name,
    [fieldName(modelsMax, "input")]: "5",
    [fieldName(modelsMax, "output")]: "6",
  });
  const refused = await owner.post("pricing", another(nameOf(modelsMax + 1)));
  assert.equal(refused.status, 400);
  assert.match(textOf(refused.html), /is listed twice/);
  await owner.submit("pricing", another("added"));
  const saved = (await operate(world, "", { method: "GET" })).body.project.pricing.models;
  assert.equal(Object.keys(saved).length, modelsMax + 3);
  const inputOf = (name: string) => saved[name].input;
  assert.deepEqual([nameOf(0), nameOf(modelsMax + 1), "added"].map(inputOf), ["3", "1", "5"]);
});

Deno.test("console: the input of the sample is kept, whatever is invalid in it", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  const { html } = await owner.get("pricing");
  assert.match(html, /name="sampleModel"[^>]*value="test-model"/);
  const sample = {
    sampleModel: "gpt-4o-mini",
    samplePrompt: "2000",
    sampleCached: "a few",
    sampleOutput: "700",
  };
  for (const wrong of [sample, { ...sample, sampleCached: "20", requestFee: "free" }]) {
    const form = { ...hiddenFields(html, "/pricing"), ...wrong, action: "effect" };
    const answer = await owner.post("pricing", form);
    assert.equal(answer.status, 400);
    for (const name of ["sampleModel", "samplePrompt", "sampleCached", "sampleOutput"] as const) {
      assert.match(answer.html, new RegExp(`name="${name}"[^>]*value="${wrong[name]}"`), name);
    }
  }
});

Deno.test("console: the effect on the catalogue is shown for some models, and described for all", async () => {
  const pricing = { catalogue: true, models: { "gpt-5": price } };
  using world = await createWorld({ project: { pricing } });
  const owner = await signedIn(world);
  const own = {
    catalogue: "on",
    [fieldName(0, "was")]: "gpt-5",
    [fieldName(0, "name")]: "gpt-5",
    [fieldName(0, "input")]: "1",
    [fieldName(0, "output")]: "2",
  };
  const effect = async (form: Record<string, string>) =>
    textOf((await owner.post("pricing", { ...own, ...form, action: "effect" })).html);
  const markup = await effect({ markupPercent: "100" });
  assert.match(markup, /Every model of the built-in catalogue changes in price, except those/);
  assert.match(markup, /gpt-4o-mini \$0\.00045 \$0\.0009 \+0\.00045 \(\+100 %\)/);
  assert.match(markup, /claude-sonnet-4-5 \$0\.0105 \$0\.021/);
  assert.doesNotMatch(markup, /gpt-5|price changes/, "its own price has no markup");
  const fee = await effect({ requestFee: "1" });
  assert.match(fee, /Every model of the built-in catalogue changes in price/);
  assert.match(fee, /gpt-5 \$0\.002 \$1\.002/);
  assert.match(fee, /gpt-4o-mini \$0\.00045 \$1\.00045/);
  const { catalogue: _, ...off } = own;
  const dropped = textOf((await owner.post("pricing", { ...off, action: "effect" })).html);
  assert.match(dropped, /is no longer served, except those with a price of your own/);
  assert.match(dropped, /gpt-4o-mini \$0\.00045 not served/);
  assert.match(
    await effect({
      [fieldName(1, "name")]: "*",
      [fieldName(1, "input")]: "1",
      [fieldName(1, "output")]: "2",
    }),
    /is then charged at the price of “\*”.*gpt-4o-mini \$0\.00045 \$0\.002/,
  );
  assert.match(await effect({}), /No model’s price changes/);
});

Deno.test("console: catalogue settings of a project that does not use it have no effect", async () => {
  const pricing = { catalogue: true, models: { "*": price } };
  using world = await createWorld({ project: { pricing } });
  using abroad = await createWorld({ project: { currency: "eur", pricing: { catalogue: true } } });
  const star = {
    [fieldName(0, "was")]: "*",
    [fieldName(0, "name")]: "*",
    [fieldName(0, "input")]: "1",
    [fieldName(0, "output")]: "2",
  };
  for (const [from, own] of [[world, star], [abroad, {}]] as const) {
    const owner = await signedIn(from);
    const form = { ...own, catalogue: "on", markupPercent: "50", action: "effect" };
    const told = textOf((await owner.post("pricing", form)).html);
    assert.match(told, /No model’s price changes/);
  }
});

Deno.test("console: prices with conditions are edited as JSON, with a preview before they are saved", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  const page = await owner.get("pricing");
  assert.match(page.html, /All prices as JSON/);
  const { seen = "" } = hiddenFields(page.html, "/pricing");
  const price = {
    input: "1",
    output: "2",
    tiers: [{ above: 200_000, input: "2" }],
    serviceTiers: { flex: { factor: "0.5" } },
    toolCalls: { web_search: "0.01" },
  };
  const json = JSON.stringify({ catalogue: true, models: { "test-model": price } });
  const form = { seen, as: "json", json, sampleModel: "test-model" };
  for (
    const [wrong, says] of [["{", /not JSON/], ["[]", /JSON object/], ['{"x":1}', /x/]] as const
  ) {
    const { status, html } = await owner.post("pricing", {
      ...form,
      json: wrong,
      action: "effect",
    });
    assert.equal(status, 400);
    assert.match(html, says);
  }
  const preview = await owner.post("pricing", { ...form, action: "effect" });
  assert.match(preview.html, /Save these prices/);
  await owner.submit("pricing", { ...form, action: "save" });
  const { body } = await world.json(`/v1/admin/projects/${world.projectId}`, { key: adminKey });
  assert.deepEqual(body.project.pricing.models["test-model"], price);
  assert.equal(body.project.pricing.catalogue, true);
});

Deno.test("console: the catalogue has list prices, what users pay and the margin, and sets a price", async () => {
  const pricing = {
    catalogue: true,
    markupPercent: "25",
    models: { "gpt-4o": { input: "5", output: "20" } },
  };
  using world = await createWorld({ project: { pricing } });
  const owner = await signedIn(world);
  const { html } = await owner.get("pricing/catalogue?q=GPT-4o");
  const rows = html.split("<tr>").map(textOf).map((text) => text.replaceAll(/\s+/g, ""));
  const row = (start: string) => rows.find((text) => text.startsWith(start)) ?? "";
  assert.match(row("gpt-4o-mini$"), /\$0\.15\$0\.60\$0\.1875\$0\.75.*20\.0%/);
  assert.match(row("gpt-4oownprice"), /\$2\.50\$10\.00\$5\.00\$20\.00.*50\.0%/);
  assert.doesNotMatch(html, /claude/);
  const filled = await owner.get("pricing?model=gpt-4o-mini");
  assert.match(filled.html, /name="model\.1\.name"[^>]*value="gpt-4o-mini"/);
  assert.match(filled.html, /name="model\.1\.output"[^>]*value="0\.6"/);
  const whole = await owner.get("pricing/catalogue");
  const [, next = ""] = /href="[^"]*(pricing\/catalogue\?q=[^"]*after=[^"]+)"/.exec(whole.html) ??
    [];
  const second = await owner.get(next.replaceAll("&amp;", "&"));
  assert.equal(second.status, 200);
  assert.notEqual(textOf(second.html), textOf(whole.html));
});
