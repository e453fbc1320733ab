import assert from "node:assert/strict";
import { hiddenFields, type Shown, signedIn, textOf } from "../support/console.ts";
import { operate } from "../support/webhooks.ts";
import { type Body, createWorld, type World } from "../support/world.ts";

async function project(world: World): Promise<Body> {
  return (await operate(world, "", { method: "GET" })).body.project;
}

function assertStale({ status, html }: Shown): void {
  assert.equal(status, 400, html);
  assert.match(textOf(html), /has changed since you opened this page/);
}

Deno.test("console: of two tabs that save the same settings, the second gets a conflict, also at the same time", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  const { seen = "" } = hiddenFields((await owner.get("limits")).html, "/limits");
  const answers = await Promise.all(
    ["user.spendPerDay", "user.requestsPerMinute"].map((name) =>
      owner.post("limits", { seen, reply: "error", [name]: "5" })
    ),
  );
  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [303, 400]);
  assertStale(answers.find(({ status }) => status === 400) ?? assert.fail());
});

Deno.test("console: a form submitted twice at once is one change, reported once", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  const { seen = "" } = hiddenFields((await owner.get("limits")).html, "/limits");
  const form = { seen, reply: "error", "user.spendPerDay": "5" };
  const answers = await Promise.all([1, 2].map(() => owner.post("limits", form)));
  assert.deepEqual(answers.map(({ status }) => status), [303, 303]);
  const { actions } = (await operate(world, "/audit", { method: "GET" })).body;
  const changes = actions.filter(({ action }: Body) => action === "project.updated");
  assert.deepEqual(changes.map(({ detail }: Body) => detail.fields), [["limits"]]);
});

Deno.test("console: texts in two languages that are saved at once are both kept", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  const forms = await Promise.all(["de", "fr"].map(async (language) => {
    const { html } = await owner.get(`messages?language=${language}`);
    return { ...hiddenFields(html, "/messages"), busy: `{{url}} ${language}` };
  }));
  const answers = await Promise.all(forms.map((form) => owner.post("messages", form)));
  assert.deepEqual(answers.map(({ status }) => status), [303, 303]);
  const { messages } = await project(world);
  assert.deepEqual([messages.de.busy, messages.fr.busy], ["{{url}} de", "{{url}} fr"]);
});

Deno.test("console: an input error does not hide a concurrent change by someone else", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  const form = { ...hiddenFields((await owner.get("limits")).html, "/limits"), reply: "error" };
  await operate(world, "", { method: "PATCH", body: { limits: { user: { spendPerDay: "5" } } } });
  const slip = await owner.post("limits", { ...form, "user.requestsPerMinute": "2o" });
  assert.match(textOf(slip.html), /must be a whole number/);
  const mended = { ...form, ...hiddenFields(slip.html, "/limits"), "user.requestsPerMinute": "20" };
  const stale = await owner.post("limits", mended);
  assertStale(stale);
  await owner.submit("limits", { ...mended, ...hiddenFields(stale.html, "/limits") });
  const { user } = (await project(world)).limits;
  assert.deepEqual([user.requestsPerMinute, user.spendPerDay], [20, null]);
});

Deno.test("console: continuing to edit prices does not overwrite a change in between", async () => {
  using world = await createWorld({ project: { pricing: { models: {}, requestFee: "0" } } });
  const owner = await signedIn(world);
  const opened = {
    ...hiddenFields((await owner.get("pricing")).html, "/pricing"),
    requestFee: "1",
  };
  const effect = await owner.post("pricing", { ...opened, action: "effect" });
  const body = { pricing: { markupPercent: "9" } };
  await operate(world, "", { method: "PATCH", body });
  const form = hiddenFields(effect.html, "/pricing");
  const edited = await owner.post("pricing", { ...form, action: "edit" });
  const again = { ...form, ...hiddenFields(edited.html, "/pricing"), markupPercent: "0" };
  assertStale(await owner.post("pricing", { ...again, action: "save" }));
  assert.equal((await project(world)).pricing.markupPercent, "9");
});

Deno.test("console: a second click on Save saves too, and other settings do not conflict", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  const hidden = hiddenFields((await owner.get("limits")).html, "/limits");
  await operate(world, "/keys", { body: { name: "another" } });
  const form = { ...hidden, "user.spendPerDay": "5", reply: "error" };
  for (const click of ["first", "second"]) {
    assert.match(textOf((await owner.submit("limits", form)).html), /Saved\./, click);
  }
});

Deno.test("console: an amount that may contain a thousands separator is refused, not taken for less", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  const hidden = hiddenFields((await owner.get("settings")).html, "/settings");
  const form = { ...hidden, name: "Shop", amounts: "10 1,000" };
  const refused = await owner.post("settings", form);
  assert.equal(refused.status, 400, refused.html);
  assert.match(refused.html, /value="10 1,000"/);
  await owner.submit("settings", { ...form, amounts: "10 2,5" });
  assert.deepEqual((await project(world)).topUp.amounts, ["10", "2.5"]);
});
