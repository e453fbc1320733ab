import assert from "node:assert/strict";
import type { Mail } from "../../src/deps.ts";
import { confirmAddresses, nextCheck } from "../support/alerts.ts";
import { chat } from "../support/chat.ts";
import { serveWorld } from "../support/served_world.ts";
import { operate } from "../support/webhooks.ts";
import { createWorld } from "../support/world.ts";

const linesOf = (text: string) => text.trimEnd().split("\n");

Deno.test("farebox: the summary and the log of requests tell what was used and refused", async () => {
  using world = await createWorld();
  await world.deposit("ada", "5");
  await chat(world, { user: "ada" });
  await chat(world, { user: "bob" });
  await world.app.flush();
  await using service = await serveWorld(world);
  const { projectId: id } = world;

  const shown = await service.run(["summary", id]);
  assert.equal(shown.code, 0, shown.complaint);
  assert.match(shown.printed, /^requests +2\ncalls +1\nfailed +0\nrefused +1$/m);
  assert.match(shown.printed, /^deposits +5$/m);
  assert.match(shown.printed, /^MODEL +REQUESTS +CALLS .*\n\S+ +2 +1 +0 +1 /m);
  assert.match(shown.printed, /^REFUSED +COUNT\ninsufficient_funds +1$/m);
  assert.match(shown.printed, /^TOP USERS +SPENT\nada +\d/m);
  assert.doesNotMatch(shown.printed, /shortfall|WITHOUT A PRICE/, "what is 0 is left out");
  const json = JSON.parse((await service.run(["summary", id, "--json"])).printed);
  const { body } = await operate(world, "/summary", { method: "GET" });
  assert.deepEqual(json.totals, body.totals);
  for (const period of [["--from", "2026-02-30"], ["--from", "2026-02-01", "--to", "2026-01-01"]]) {
    const refused = await service.run(["summary", id, ...period]);
    assert.deepEqual([refused.code, /'(from|to)'/.test(refused.complaint)], [1, true]);
  }

  const all = await service.run(["requests", "list", id]);
  assert.match(linesOf(all.printed)[0] ?? "", /^ID +CREATED +OUTCOME +STATUS +REASON /);
  assert.equal(linesOf(all.printed).length, 3);
  const refused = await service.run(["requests", "list", id, "--outcome", "refused", "--json"]);
  assert.deepEqual(linesOf(refused.printed).map((line) => JSON.parse(line).user), ["bob"]);
  const first = await service.run(["requests", "list", id, "--limit", "1"]);
  assert.match(first.complaint, /^There is more\. Continue with --cursor \S+, or use --all\./);
  const wrong = await service.run(["requests", "list", id, "--outcome", "gone"]);
  assert.equal(wrong.code, 1);
  assert.match(wrong.complaint, /'outcome': must be \w+, .* or \w+\./);
});

Deno.test("farebox: alerts are listed with what hinders their e-mails, and tested", async () => {
  const mails: Mail[] = [];
  const sendMail = (mail: Mail) => Promise.resolve(void mails.push(mail));
  const alerts = { emails: ["owner@my.app"], userBalance: { below: "10" } };
  using world = await createWorld({ project: { alerts }, sendMail });
  await using service = await serveWorld(world);
  const { projectId: id } = world;
  const early = await service.run(["alerts", "list", id]);
  assert.match(early.complaint, /^owner@my\.app gets no alerts: its owner has not opened the link/);
  assert.match((await service.run(["alerts", "test", id])).complaint, /is confirmed yet/);
  await confirmAddresses(world, mails);
  await world.deposit("ada", "5");
  await nextCheck(world);
  const shown = await service.run(["alerts", "list", id]);
  assert.equal(shown.complaint, "");
  assert.match(shown.printed, /^RULE +FIRED +RESOLVED +SUMMARY\nuserBalance +\S+ +- +\w/);
  const [line = ""] = linesOf((await service.run(["alerts", "list", id, "--json"])).printed);
  assert.equal(JSON.parse(line).user, "ada");
  assert.equal((await service.run(["alerts", "test", id])).printed, "The sample was sent.\n");
  assert.equal((await service.run(["alerts", "list", "pw_none"])).code, 1);
});

Deno.test("farebox stripe connect: the key comes from standard input, and is never shown", async () => {
  using world = await createWorld();
  await using service = await serveWorld(world);
  const { projectId: id } = world;
  const connect = (key: string) => service.run(["stripe", "connect", id, "--key"], key);
  const made = await connect("sk_test_of_the_owner\n");
  assert.equal(made.code, 0, made.complaint);
  assert.match(made.printed, new RegExp(`^Stripe is connected, .*/v1/stripe/${id}\n$`));
  assert.equal(world.stripe.endpoints.length, 1);
  const wrong = await connect("sk_test_of_nobody");
  assert.deepEqual([wrong.code, /Stripe refuses/.test(wrong.complaint)], [1, true]);
  assert.equal((await connect("")).code, 2);
  assert.equal((await service.run(["stripe", "connect", id])).code, 2);
  world.stripe.failsWith = 503;
  assert.match((await connect("sk_test_of_the_owner")).complaint, /Stripe did not respond/);
});
