import assert from "node:assert/strict";
import { fromBytes, toBytes } from "../../src/base/json.ts";
import { projectKey } from "../../src/store/keys.ts";
import { chatBody, chatPath } from "../support/books.ts";
import { hiddenFields, signedIn, textOf } from "../support/console.ts";
import { put } from "../support/verify.ts";
import { operate } from "../support/webhooks.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";

async function project(world: World): Promise<Body> {
  return (await operate(world, "", { method: "GET" })).body.project;
}

async function lastAction(world: World): Promise<Body> {
  const path = `/v1/admin/projects/${world.projectId}/audit?limit=1`;
  return (await world.json(path, { key: adminKey })).body.actions[0];
}

async function byOwner(world: World): Promise<Body> {
  const [, own] = (await operate(world, "/keys", { method: "GET" })).body.keys;
  return { actor: { type: "key", id: own.id, suffix: own.suffix }, via: "console" };
}

Deno.test("console: a key is created and shown once, works, and a second click creates no other", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  const form = { ...hiddenFields((await owner.get("keys")).html, "/keys"), name: "till" };
  const made = await owner.post("keys", { ...form, scopes: "money" });
  const [apiKey = ""] = /sk_[0-9A-Za-z]{43}/.exec(made.html) ?? [];
  world.seenSecrets.add(apiKey);
  assert.equal((await world.call("/v1/user/balance?user=a", { key: apiKey })).status, 200);
  assert.doesNotMatch((await owner.get("keys")).html, new RegExp(apiKey));
  const { action, target, detail, ...by } = await lastAction(world);
  assert.deepEqual([action, detail.name, detail.scopes], ["key.created", "till", ["money"]]);
  assert.deepEqual({ actor: by.actor, via: by.via }, await byOwner(world));
  const again = await owner.post("keys", { ...form, scopes: "money" });
  assert.ok(again.html.includes(apiKey), "whose answer is the one that a browser shows");
  const other = await owner.post("keys", { ...form, scopes: "chat" });
  assert.match(textOf((await owner.get(other.location ?? "")).html), /is processed only once/);
  const { keys } = (await operate(world, "/keys", { method: "GET" })).body;
  assert.deepEqual(keys.map(({ id }: Body) => id).slice(2), [target]);
});

Deno.test("console: errors of a new key are shown on the form, which keeps the input", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  const hidden = () => owner.get("keys").then(({ html }) => hiddenFields(html, "/keys"));
  for (
    const [fields, says] of [
      [
        { name: "till", scopes: "money", user: "ada" },
        /‘Only for this user’ requires that chat is the key/,
      ],
      [{ name: "till" }, /Choose at least one thing/],
      [{ name: "till", scopes: "all" }, /scopes/],
      [{ name: "x".repeat(200), scopes: "chat" }, /name/],
    ] as const
  ) {
    const answer = await owner.post("keys", { ...await hidden(), ...fields });
    assert.equal(answer.status, 400);
    assert.match(textOf(answer.html), says);
    assert.match(answer.html, new RegExp(`value="${fields.name.slice(0, 20)}`));
  }
  assert.equal((await owner.post("keys", { name: "till", scopes: "chat" })).status, 400, "no id");
  assert.equal((await operate(world, "/keys", { method: "GET" })).body.keys.length, 2);
});

Deno.test("console: a key is revoked after a confirmation, and revoking one's own ends the session", async () => {
  using world = await createWorld();
  const { body: { key } } = await operate(world, "/keys", { body: { name: "till" } });
  const owner = await signedIn(world);
  const ask = await owner.get(`keys/${key.id}/revoke`);
  assert.match(textOf(ask.html), /till that ends in ….... and may chat, money, webhooks stops/);
  assert.doesNotMatch(textOf(ask.html), /signed in with this key/);
  assert.equal((await lastAction(world)).action, "console.signed_in", "asking changes nothing");
  const done = await owner.submit(`keys/${key.id}/revoke`);
  assert.match(textOf(done.html), /The key is revoked.*till ….... revoked/);
  const { action, target, ...by } = await lastAction(world);
  assert.deepEqual([action, target], ["key.revoked", key.id]);
  assert.deepEqual({ actor: by.actor, via: by.via }, await byOwner(world));
  const [, own] = (await operate(world, "/keys", { method: "GET" })).body.keys;
  assert.match(textOf((await owner.get(`keys/${own.id}/revoke`)).html), /signed in with this key/);
  const out = await owner.submit(`keys/${own.id}/revoke`);
  assert.match(out.location ?? "", /^\/console\/sign-in/);
  for (const id of ["key_00000000000000000000000000", "x"]) {
    const operator = await signedIn(world, adminKey);
    assert.equal((await operator.get(`keys/${id}/revoke`)).status, 404);
  }
});

Deno.test("console: limits are saved, and the audit trail has only what changed", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  const hidden = hiddenFields((await owner.get("limits")).html, "/limits");
  const fields = { "user.requestsPerMinute": "5", "user.spendPerDay": "2,50", reply: "message" };
  const saved = await owner.submit("limits", { ...hidden, ...fields });
  assert.match(textOf(saved.html), /Saved\./);
  assert.match(saved.html, /name="user.spendPerDay"[^>]*value="2.5"/);
  const { limits } = await project(world);
  assert.deepEqual(limits.user, {
    requestsPerMinute: 5,
    tokensPerMinute: null,
    concurrent: null,
    spendPerDay: "2.5",
    spendPerMonth: null,
  });
  assert.equal(limits.reply, "message");
  assert.deepEqual((await lastAction(world)).detail.fields, ["limits"]);
  const before = (await lastAction(world)).id;
  const current = hiddenFields(saved.html, "/limits");
  const same = await owner.submit("limits", { ...current, ...fields });
  assert.match(textOf(same.html), /Nothing was changed/);
  assert.equal((await lastAction(world)).id, before);
  const wrong = await owner.post("limits", { ...current, "key.concurrent": "many" });
  assert.equal(wrong.status, 400);
  assert.match(textOf(wrong.html), /‘Concurrent responses’ must be a whole number, not 'many'/);
  assert.match(wrong.html, /value="many"/);
  const little = await owner.post("limits", { ...current, "user.spendPerDay": "-1" });
  assert.match(textOf(little.html), /‘Spending per day’ must be a decimal string/);
  const none = await owner.post("limits", { ...current, "user.tokensPerMinute": "0" });
  assert.match(
    textOf(none.html),
    /‘Tokens per minute’ must be at least 1\. An empty field is no l/,
  );
});

Deno.test("console: a concurrent change by someone else is not overwritten unseen", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  const hidden = hiddenFields((await owner.get("settings")).html, "/settings");
  await world.clock.advance(1_000);
  await operate(world, "", { method: "PATCH", body: { trialCredits: "3" } });
  const form = { ...hidden, name: "Shop", trialCredits: "0", amounts: "5" };
  const stale = await owner.post("settings", form);
  assert.equal(stale.status, 400);
  assert.match(textOf(stale.html), /has changed since you opened this page/);
  assert.equal((await project(world)).trialCredits, "3");
  await owner.submit("settings", { ...form, ...hiddenFields(stale.html, "/settings") });
  const { name, trialCredits } = await project(world);
  assert.deepEqual([name, trialCredits], ["Shop", "0"]);
});

Deno.test("console: a value that 0.9.0 accepted does not keep the rest of a form from being saved", async () => {
  using world = await createWorld();
  const key = projectKey(world.projectId);
  const { value } = await world.deps.kv.get(key);
  const stored = fromBytes<Body>(value ?? assert.fail());
  const logoUrl = "https://a,b/c";
  await put(world, key, toBytes({ ...stored, brand: { ...stored.brand, logoUrl } }));
  await world.clock.advance(10_000);
  const owner = await signedIn(world);
  const form = {
    ...hiddenFields((await owner.get("settings")).html, "/settings"),
    name: "Shop",
    amounts: stored.topUp.amounts.join(" "),
    min: stored.topUp.min,
    max: stored.topUp.max,
    logoUrl,
  };
  assert.match(textOf((await owner.submit("settings", form)).html), /Saved/);
  assert.equal((await project(world)).name, "Shop");
  const worse = { ...form, ...hiddenFields((await owner.get("settings")).html, "/settings") };
  assert.equal((await owner.post("settings", { ...worse, logoUrl: "https://a,b/d" })).status, 400);
});

Deno.test("console: settings are saved as by the admin API, and errors are shown", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  const page = await owner.get("settings");
  const form = {
    ...hiddenFields(page.html, "/settings"),
    name: "Ada’s shop",
    lowBalance: "1,5",
    trialCredits: "0.25",
    topUpUrl: "https://shop.example/pay/{user}",
    amounts: "3, 6,50",
    min: "1",
    max: "50",
    billingEvents: "on",
    allowedFields: "prediction, preset",
    unknownFields: "on",
  };
  const bad: [name: string, value: string, says: RegExp][] = [
    ["name", "", /‘Name’ must not be empty\./],
    ["lowBalance", "-1", /‘Warn below this balance’ must be a decimal string/],
    ["topUpUrl", "javascript:alert(1)", /‘Your own top-up page, instead of ours’ must be an http/],
    ["amounts", "", /‘Amounts to choose from’ must be one to six amounts/],
    ["amounts", "1 2 3 4 5 6 7", /‘Amounts to choose from’ must be one to six amounts/],
    ["amounts", "5,10,25", /‘Amounts to choose from’ must be a decimal string/],
    ["allowedFields", "x".repeat(65), /‘Request fields to pass on .*’/],
    ["maxOutputTokens", "0", /‘Max. output tokens of a response’ must be at least 1/],
  ];
  for (const [name, value, says] of bad) {
    const answer = await owner.post("settings", { ...form, [name]: value });
    assert.equal(answer.status, 400, name);
    assert.match(textOf(answer.html), says);
  }
  assert.match(textOf((await owner.submit("settings", form)).html), /Saved/);
  const { name, lowBalance, trialCredits, topUpUrl, topUp } = await project(world);
  assert.deepEqual([name, lowBalance, trialCredits], ["Ada’s shop", "1.5", "0.25"]);
  assert.equal(topUpUrl, "https://shop.example/pay/{user}");
  assert.deepEqual(topUp, { amounts: ["3", "6.5"], min: "1", max: "50", checkoutUrl: null });
  const { allowedFields, unknownFields } = await project(world);
  assert.deepEqual([allowedFields, unknownFields], [["prediction", "preset"], "pass"]);
  assert.match((await owner.get("settings")).html, /name="unknownFields" value="on" checked/);
  const { detail } = await lastAction(world);
  assert.deepEqual(detail.lowBalance, { from: null, to: "1.5" });
});

Deno.test("console: an owner's own messages are entered by language, and users get them", async () => {
  using world = await createWorld({ project: { messages: { fr: { cut: "Plus : {{url}}" } } } });
  const owner = await signedIn(world);
  const page = await owner.get("messages?language=DE");
  assert.match(textOf(page.html), /German \(de\).*Default You have run out of credit/s);
  const hidden = hiddenFields(page.html, "/messages");
  const bad = await owner.post("messages", {
    ...hidden,
    insufficient_funds: "Kein Geld, {{user}}",
  });
  assert.equal(bad.status, 400);
  assert.match(textOf(bad.html), /‘The user has run out of credit’ must contain \{\{url\}\}/);
  assert.match(bad.html, /Kein Geld, \{\{user\}\}/, "what was typed is still there");
  const words = "Guthaben {{balance}} bei {{name}}: {{url}}";
  const saved = await owner.submit("messages", { ...hidden, insufficient_funds: words });
  assert.match(textOf(saved.html), /Saved.*Guthaben \$1\.25 bei .*: https:/s);
  assert.deepEqual((await project(world)).messages, {
    fr: { cut: "Plus : {{url}}" },
    de: { insufficient_funds: words },
  });
  const headers = { "accept-language": "de-AT" };
  const answered = await world.json(chatPath, { body: chatBody("ada"), headers });
  assert.match(answered.body.choices[0].message.content, /^Guthaben \$0\.00 bei /);
  const current = hiddenFields(saved.html, "/messages");
  await owner.submit("messages", { ...current, insufficient_funds: " " });
  assert.deepEqual((await project(world)).messages, { fr: { cut: "Plus : {{url}}" } });
  const odd = await owner.get("messages?language=%3Cb%3E");
  const none = hiddenFields(odd.html, "/messages");
  const refused = await owner.post("messages", { ...none, cut: "{{url}}" });
  assert.equal(refused.status, 400);
  assert.match(textOf(refused.html), /‘Language tag’ must be a lowercase language tag/);
  assert.ok(!odd.html.includes("<b>"));
  assert.equal((await owner.get("messages?language=constructor")).status, 200);
});

Deno.test("console: archiving asks for confirmation, and then the project refuses calls", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  assert.match(textOf((await owner.get("archive")).html), /refuses new calls.*cannot be undone/);
  assert.equal((await project(world)).status, "active");
  const wrong = await owner.post("archive", { name: "Another" });
  assert.match(textOf(wrong.html), /not the project’s name.*Nothing was archived/);
  assert.equal((await project(world)).status, "active");
  await owner.submit("archive", { name: (await project(world)).name });
  assert.equal((await project(world)).status, "archived");
  assert.equal((await world.json(chatPath, { body: chatBody("ada") })).status, 403);
  assert.doesNotMatch((await owner.get("settings")).html, /Archive this project/);
});

Deno.test("console: the effect of prices is computed by what charges, before they are saved", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  const { html } = await owner.get("pricing");
  const row = (input: string, output: string) => ({
    "model.0.was": "test-model",
    "model.0.name": "test-model",
    "model.0.input": input,
    "model.0.output": output,
    "model.0.maxOutputTokens": "1000",
    "model.1.name": "dear",
    "model.1.input": "10",
    "model.1.output": "20",
  });
  const form = {
    seen: hiddenFields(html, "/pricing").seen ?? "",
    requestFee: "0.001",
    ...row("2", "4"),
    sampleModel: "test-model",
    samplePrompt: "1000",
    sampleCached: "200",
    sampleOutput: "500",
    action: "effect",
  };
  const effect = await owner.post("pricing", form);
  const text = textOf(effect.html);
  assert.match(text, /test-model \$0\.002 \$0\.005 \+0\.003 \(\+150 %\)/);
  assert.match(text, /dear not served \$0\.021/);
  assert.equal((await project(world)).pricing.requestFee, "0", "nothing is saved yet");
  const back = await owner.post("pricing", { ...form, action: "edit" });
  assert.match(back.html, /name="model.1.name" value="dear"/);
  const saved = await owner.submit("pricing", { ...form, action: "save" });
  assert.match(textOf(saved.html), /Saved/);
  assert.deepEqual((await project(world)).pricing, {
    catalogue: false,
    markupPercent: "0",
    priceFrom: "list",
    requestFee: "0.001",
    models: {
      "test-model": { input: "2", output: "4", maxOutputTokens: 1000, reasoning: false },
      dear: { input: "10", output: "20" },
    },
  });
  assert.deepEqual((await lastAction(world)).detail.fields, [
    "pricing.requestFee",
    "pricing.models",
  ]);
});

Deno.test("console: settings of a model that the form does not show are kept, and invalid prices are reported", async () => {
  const model = { input: "1", output: "2", mediaTokens: { image_url: 1000 }, displayName: "Mine" };
  using world = await createWorld({ project: { pricing: { models: { m: model } } } });
  const owner = await signedIn(world);
  const { seen = "" } = hiddenFields((await owner.get("pricing")).html, "/pricing");
  const form = {
    seen,
    "model.0.was": "m",
    "model.0.name": "renamed",
    "model.0.input": "3",
    "model.0.output": "2",
    action: "save",
  };
  const bad: [fields: Record<string, string>, says: RegExp][] = [
    [{ "model.0.input": "free" }, /models\.renamed\.input/],
    [{ "model.0.output": "" }, /models\.renamed\.output/],
    [{ markupPercent: "-5" }, /‘Markup on catalogue prices’ must be/],
    [{ "model.1.name": "renamed", "model.1.input": "1", "model.1.output": "1" }, /listed twice/],
    [{ "model.1.name": " ", "model.1.output": "1" }, /A model needs a name/],
    [{ samplePrompt: "1", sampleCached: "2" }, /sample/],
  ];
  for (const [fields, says] of bad) {
    const answer = await owner.post("pricing", { ...form, ...fields });
    assert.equal(answer.status, 400);
    assert.match(textOf(answer.html), says);
  }
  await owner.submit("pricing", form);
  assert.deepEqual((await project(world)).pricing.models, { renamed: { ...model, input: "3" } });
  await owner.submit("pricing", {
    ...hiddenFields((await owner.get("pricing")).html, "/pricing"),
    "model.0.name": "",
    action: "save",
  });
  assert.deepEqual((await project(world)).pricing.models, {});
});

Deno.test("console: a message of several lines is unchanged, although browsers send other line ends", async () => {
  using world = await createWorld();
  const messages = { en: { insufficient_funds: "Out of credit.\nTop up: {{url}}" } };
  const path = `/v1/admin/projects/${world.projectId}`;
  await world.json(path, { method: "PATCH", key: adminKey, body: { messages } });
  const owner = await signedIn(world);
  const hidden = hiddenFields((await owner.get("messages")).html, "/messages");
  const text = messages.en.insufficient_funds.replaceAll("\n", "\r\n");
  await owner.submit("messages", { ...hidden, insufficient_funds: text });
  assert.deepEqual((await project(world)).messages, messages);
});

Deno.test("console: names that someone has chosen stand in their own direction of text", async () => {
  using world = await createWorld();
  const name = "ada\u202e\u2067moc";
  await operate(world, "", { method: "PATCH", body: { name } });
  await world.deposit(name, "5");
  await operate(world, "/keys", { body: { name, scopes: ["chat"], user: name } });
  const owner = await signedIn(world);
  const user = encodeURIComponent(name);
  const pages = ["", "users", `users/one?user=${user}`, `deposit?user=${user}`, "keys", "settings"];
  for (const path of [...pages, "audit", "live"]) {
    const { html, status } = await owner.get(
      path === "" ? `/console/projects/${world.projectId}` : path,
    );
    assert.equal(status, 200, path);
    // Titles, options, values of inputs and attributes are text of their own.
    const body = html.replace(/<(title|option)\b[^>]*>[^<]*<\/\1>/g, "").replace(
      /<[^>]*>/g,
      (tag) => /^<\/?bdi>/.test(tag) ? tag : "",
    );
    const outside = body.replace(/<bdi>[^<]*<\/bdi>/g, "");
    assert.ok(body.includes(`<bdi>${name}</bdi>`), path);
    assert.doesNotMatch(outside, /[\u202a-\u202e\u2066-\u2069]/, path);
  }
});
