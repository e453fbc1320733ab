import assert from "node:assert/strict";
import { readPeriod, usualPeriods } from "../../src/console/shown_period.ts";
import { amountSteps } from "../../src/console/timeline.ts";
import { toAmount } from "../../src/base/money.ts";
import { chatBody, chatPath } from "../support/books.ts";
import { settle } from "../support/clock.ts";
import { signedIn, textOf } from "../support/console.ts";
import { chunk, completion, fedStream, usage, usageChunk } from "../support/upstream.ts";
import { adminKey, createWorld } from "../support/world.ts";

const hourMs = 60 * 60 * 1000;
const unit = toAmount(1n);

Deno.test("console: the overview equals the entries, by model, user and reason", async () => {
  using world = await createWorld();
  await world.deposit("ada", "5");
  await world.deposit("bob", "0.00001");
  world.upstream.reply(() => completion({ usage: usage(1_000, 100) }));
  for (let n = 0; n < 3; n++) await world.json(chatPath, { body: chatBody("ada") });
  await world.clock.advance(2 * hourMs);
  await world.json(chatPath, { body: chatBody("ada") });
  await world.json(chatPath, { body: chatBody("bob") });
  await world.json("/v1/user/charge", { body: { user: "ada", amount: "1" } });
  await world.app.sweep();
  const owner = await signedIn(world);
  const { html } = await owner.get("");
  const text = textOf(html);
  // 4 responses of 0.0012 each, and a charge of 1.
  assert.match(text, /Revenue \$1\.00 .*Outstanding balance \$3\.99/);
  assert.match(text, /Requests 5 .*Calls 4 .*Failed 0 .*Refused 1 /);
  assert.match(text, /test-model 5 4 0\.0 % < 250 ms 4,000 \/ 400 – – \$0\.0048/);
  assert.match(text, /Spent Share of all ada \$1\.00/);
  assert.match(text, /insufficient_funds 1/);
  assert.match(text, /2026-01-01 00:00 \$0\.0036/);
  assert.match(text, /2026-01-01 02:00 \$1\.00/);
  const charts = html.match(/<svg[^>]*role="img"[^>]*aria-labelledby="([\w-]+)-title \1-says"/g);
  assert.equal(charts?.length, 2, "one for a desk, one for a phone");
  assert.match(html, /<desc id="charged-says">1\.0048 usd were charged in the last 24 hours/);
});

Deno.test("console: the overview of one model or key, and a user's page from there", async () => {
  const models = {
    "test-model": { input: "1", output: "2" },
    "other-model": { input: "10", output: "20" },
  };
  using world = await createWorld({ project: { pricing: { models } } });
  const keys = `/v1/admin/projects/${world.projectId}/keys`;
  const other = await world.json(keys, { key: adminKey, body: { name: "batch" } });
  await world.deposit("ada", "5");
  await world.deposit("bob", "0.00001");
  world.upstream.reply(({ body }) => completion({ model: body.model, usage: usage(1_000, 100) }));
  const ask = (model: string, key?: string, user = "ada") =>
    world.json(chatPath, { body: chatBody(user, { model }), ...(key ? { key } : {}) });
  await ask("test-model");
  await ask("other-model");
  await ask("other-model", other.body.apiKey);
  await ask("other-model", other.body.apiKey, "bob");
  world.upstream.once(() => new Response("broken", { status: 500 }));
  await ask("other-model", other.body.apiKey);
  await world.app.sweep();
  const owner = await signedIn(world);
  const show = async (query: string) => textOf((await owner.get(`?${query}`)).html);
  assert.match(
    await show("model=other-model"),
    /only the model other-model.*Revenue \$0\.0240.*in \/ out 2,000 \/ 200.*Requests 4 .*Calls 3 .*Failed 1 33\.3 %.*Refused 1 25 %/,
  );
  assert.match(await show("model=test-model"), /Revenue \$0\.0012.*Requests 1 .*Failed 0 0 %/);
  assert.match(
    await show(`key=${other.body.key.id}`),
    /only the key batch \(…\w{4}\).*Charged, before refunds \$0\.0120.*1,000 \/ 100.*Requests 3 .*Calls 2 .*Failed 1 50 %.*Refused 1/,
  );
  const none = await show("model=nothing&days=30");
  assert.match(none, /Revenue \$0\.00 no earlier data.*Requests 0/);
  assert.doesNotMatch(none, /NaN/);
  const { status, headers } = await owner.get("?user=ada&days=7");
  assert.equal(status, 303);
  assert.match(headers.get("location") ?? "", /\/users\/one\?user=ada&days=7$/);
  assert.equal((await owner.get(`?user=${"x".repeat(200)}`)).status, 400);
});

Deno.test("console: an empty period shows zeros, and an unknown period the default", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  for (const path of ["", "?days=7", "?days=30", "?days=90", "?days=x"]) {
    const { status, html } = await owner.get(path);
    assert.equal(status, 200, path);
    assert.match(textOf(html), /No requests in this period/);
    assert.doesNotMatch(html, /NaN|Infinity|undefined/);
  }
});

Deno.test("console: a chart of one day is labelled with hours, longer ones with days", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  for (const days of [1, 7, 30, 90]) {
    const { html } = await owner.get(`?days=${days}`);
    const [, chart = ""] =
      /<figure>.*?<svg class="wide" viewBox="0 0 1000(.*?)<\/svg>/s.exec(html) ?? [];
    const ticks = [...chart.matchAll(/>(\d\d:\d\d|[A-Z][a-z]{2} \d+)<\/text>/g)].map((
      [, tick = ""],
    ) => tick);
    assert.ok(ticks.length >= 5 && new Set(ticks).size >= 5, `${days}: ${ticks}`);
    assert.ok(ticks.every((tick) => tick.includes(days === 1 ? ":" : " ")), `${days}: ${ticks}`);
  }
});

Deno.test("timeline: every hour of a range is in one step, and none from outside", () => {
  for (const now of [0, 1, 59 * 60_000, 13 * hourMs + 5, 24 * hourMs - 1]) {
    const at = Date.UTC(2026, 1, 28) + now;
    for (const range of usualPeriods) {
      const { from, to } = readPeriod(
        (name) => name === "days" ? String(range.days) : undefined,
        at,
      );
      const hours = [];
      for (let start = from; start < to; start += hourMs) hours.push({ start, amount: unit });
      const steps = amountSteps(hours, { from, to, stepMs: range.stepMs });
      const counted = steps.reduce((sum, { amount }) => sum + amount, 0n);
      assert.equal(counted, unit * BigInt(hours.length));
      const most = (range.days * 24 * hourMs) / range.stepMs;
      assert.ok(steps.length <= most && steps.length > most - 4, `${range.title} ${steps.length}`);
      assert.ok((steps.at(-1)?.start ?? 0) <= at);
      assert.ok(at - from <= range.days * 24 * hourMs);
    }
  }
});

Deno.test("console: a running call is shown with what it has used, and its user's hold", async () => {
  using world = await createWorld();
  await world.deposit("ada", "5");
  const other = await world.makeProject();
  const stream = fedStream();
  world.upstream.once(() => stream.response);
  const running = await world.call(chatPath, { body: chatBody("ada", { stream: true }) });
  const text = running.text();
  stream.send(chunk({ content: "One two three four" }));
  await settle();
  await world.clock.advance(4_000);
  const owner = await signedIn(world);
  const live = await owner.get("live");
  assert.match(
    textOf(live.html),
    /1 response is running.*test-model ada .* 6 \d+ 4 \$0\.0000/,
  );
  assert.match(live.headers.get("content-security-policy") ?? "", /script-src 'self'/);
  const user = textOf((await owner.get("users/one?user=ada")).html);
  assert.match(user, /held by 1 running request.*Held.*req_/);
  const stranger = await signedIn(world, other.ownerKey);
  const elsewhere = await stranger.get(`/console/projects/${other.projectId}/live`);
  assert.match(textOf(elsewhere.html), /0 responses are running.*Nothing is running/);
  stream.send(chunk({}, "stop"));
  stream.send(usageChunk());
  stream.send("[DONE]");
  stream.end();
  await text;
  await settle();
  assert.match(textOf((await owner.get("live")).html), /0 responses are running/);
});
