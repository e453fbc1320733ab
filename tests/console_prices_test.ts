import assert from "node:assert/strict";
import { fieldName, modelsMax } from "../src/console/price_form.ts";
import { hiddenFields, signedIn, textOf } from "./support/console.ts";
import { operate } from "./support/webhooks.ts";
import { createWorld } from "./support/world.ts";

const price = { input: "1", output: "2" };
const nameOf = (n: number) => `vendor-with-a-long-name/model-${String(n).padStart(40, "0")}`;

Deno.test("console: prices of more models than the page shows are kept, and none is set twice", async () => {
  const names = Array.from({ length: modelsMax + 2 }, (_, n) => nameOf(n));
  const models = Object.fromEntries(names.map((name) => [name, price]));
  using world = await createWorld({ project: { pricing: { models } } });
  const owner = await signedIn(world);
  const { html } = await owner.get("pricing");
  assert.match(textOf(html), /2 more models are kept as they are/);
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
  assert.match(textOf(refused.html), /is there twice/);
  await owner.submit("pricing", another("added"));
  const saved = (await operate(world, "", { method: "GET" })).body.project.pricing.models;
  assert.equal(Object.keys(saved).length, modelsMax + 3);
  const inputOf = (name: string) => saved[name].input;
  assert.deepEqual([nameOf(0), nameOf(modelsMax + 1), "added"].map(inputOf), ["3", "1", "5"]);
});

Deno.test("console: what was typed of the sample stays, whatever is wrong with it", async () => {
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
