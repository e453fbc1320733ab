import assert from "node:assert/strict";
import { concurrencyMax } from "../../src/webhooks/delivery/breaker.ts";
import { holdingPrefix, leaseKey, processesPrefix } from "../../src/store/keys.ts";
import { chatBody, chatPath } from "../support/books.ts";
import { signedIn, textOf, Visitor } from "../support/console.ts";
import { settle } from "../support/clock.ts";
import { ada, forgetWholly, rowsNaming } from "../support/forget.ts";
import { chunk, fedStream } from "../support/upstream.ts";
import { deliver, logs, subscribe } from "../support/webhooks.ts";
import { adminKey, createWorld, type World } from "../support/world.ts";

/** Two services that know that they share a store. */
async function fleetOfTwo(project: Record<string, unknown> = {}) {
  const one = await createWorld({ isShared: true, project });
  const two = await createWorld({ shareWith: one });
  return {
    one,
    two,
    /** What both do twice a second, at a moment between the other's. */
    async beat() {
      await one.clock.advance(500);
      for (const world of [one, two, one]) await world.app.beat();
    },
    [Symbol.dispose]() {
      two[Symbol.dispose]();
      one[Symbol.dispose]();
    },
  };
}

const ask = (world: World, user = "ada", more = {}) =>
  world.json(chatPath, { body: chatBody(user, more) });

/** Starts a response that goes on. */
async function startAnswer(world: World, user: string) {
  const stream = fedStream();
  world.upstream.once(() => stream.response);
  const response = world.call(chatPath, { body: chatBody(user, { stream: true }) });
  stream.send(chunk({ content: "One two three" }));
  await settle();
  return { stream, text: response.then((answer) => answer.text()) };
}

Deno.test("fleet: a key's requests a minute are counted over all processes", async () => {
  using fleet = await fleetOfTwo({ limits: { key: { requestsPerMinute: 10 } } });
  const { one, two, beat } = fleet;
  await one.deposit("ada", "10");
  await beat();
  for (let n = 0; n < 6; n++) assert.equal((await ask(one)).status, 200);
  await beat();
  const statuses = [];
  for (let n = 0; n < 6; n++) statuses.push((await ask(two)).status);
  // Half a second has given none back: one comes every six seconds.
  assert.deepEqual(statuses, [200, 200, 200, 200, 429, 429]);
  await beat();
  assert.equal((await ask(one)).status, 429);
  await one.clock.advance(60_000);
  await beat();
  assert.equal((await ask(two)).status, 200, "and nothing is counted twice");
});

Deno.test("fleet: a new process does not count what was taken before it was there", async () => {
  using fleet = await fleetOfTwo({ limits: { key: { requestsPerMinute: 10 } } });
  const { one, beat } = fleet;
  await one.deposit("ada", "10");
  await beat();
  for (let n = 0; n < 9; n++) assert.equal((await ask(one)).status, 200);
  await beat();
  using third = await createWorld({ shareWith: one });
  await third.app.beat();
  assert.equal((await ask(third)).status, 200);
});

Deno.test("fleet: a key's calls at once are counted over all processes", async () => {
  using fleet = await fleetOfTwo({ limits: { key: { concurrent: 1 } } });
  const { one, two, beat } = fleet;
  await one.deposit("ada", "10");
  const { stream, text } = await startAnswer(one, "ada");
  await beat();
  assert.equal((await ask(two, "bob")).status, 429);
  stream.send("[DONE]");
  stream.end();
  await text;
  await beat();
  await two.deposit("bob", "1");
  assert.equal((await ask(two, "bob")).status, 200);
});

Deno.test("fleet: the live view counts the calls of all processes, and shows those of its own", async () => {
  using fleet = await fleetOfTwo();
  const { one, two, beat } = fleet;
  for (const user of ["ada", "bob"]) await one.deposit(user, "5");
  const first = await startAnswer(one, "ada");
  await one.clock.advance(2_000);
  const second = await startAnswer(two, "bob");
  await beat();
  for (const [world, own, other] of [[one, "ada", "bob"], [two, "bob", "ada"]] as const) {
    const live = textOf((await (await signedIn(world)).get("live")).html);
    assert.match(live, /2 responses are running\. 1 of them in other processes/);
    assert.match(live, new RegExp(`test-model 2 .*test-model ${own}`));
    assert.doesNotMatch(live, new RegExp(other));
  }
  for (const { stream } of [first, second]) {
    stream.send("[DONE]");
    stream.end();
  }
  await Promise.all([first.text, second.text]);
  await beat();
  assert.match(textOf((await (await signedIn(two)).get("live")).html), /0 responses are running/);
});

Deno.test("fleet: attempts to sign in are counted over all processes", async () => {
  using fleet = await fleetOfTwo();
  const { one, two, beat } = fleet;
  await beat();
  const attempt = async (world: World) =>
    (await new Visitor(world).post("/console/sign-in", { key: "sk_wrong", to: "" })).status;
  // Behind no proxy a test's visitors have no address, so the limit over all counts: 300.
  for (let n = 0; n < 300; n++) assert.equal(await attempt(one), 401);
  assert.equal(await attempt(one), 429);
  await beat();
  assert.equal(await attempt(two), 429);
});

Deno.test("fleet: deliveries at once to one endpoint are bounded over all processes", async () => {
  using fleet = await fleetOfTwo();
  const { one, two, beat } = fleet;
  await subscribe(one, { events: ["balance.deposit.*"] });
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  let running = 0;
  let most = 0;
  one.subscriber.reply(async () => {
    most = Math.max(most, ++running);
    await opened;
    running--;
    return {};
  });
  for (let n = 0; n < concurrencyMax - 2; n++) await one.deposit(`ada-${n}`, "1");
  await settle();
  assert.equal(running, concurrencyMax - 2);
  await beat();
  for (let n = 0; n < concurrencyMax; n++) await two.deposit(`bob-${n}`, "1");
  await settle();
  // A process may always use its fair share, so that none waits for ever.
  assert.ok(most <= concurrencyMax - 2 + concurrencyMax / 2, `${most} at once`);
  open();
  await settle();
  await beat();
  for (const world of [one, two]) await deliver(world);
  assert.equal((await logs(one, "&limit=100")).length, 2 * concurrencyMax - 2);
});

Deno.test("fleet: an endpoint that one process gives a rest is given it by all", async () => {
  using fleet = await fleetOfTwo();
  const { one, two, beat } = fleet;
  await subscribe(one, { events: ["balance.deposit.*"] });
  one.subscriber.reply(() => ({ status: 500 }));
  for (let n = 0; n < 12; n++) {
    await one.deposit("ada", "1");
    await deliver(one);
  }
  await beat();
  const asked = one.subscriber.received.length;
  await two.deposit("ada", "1");
  await deliver(two);
  assert.equal(one.subscriber.received.length, asked, "the other process does not ask either");
});

Deno.test("fleet: one process sweeps, and another one takes over when it leaves or dies", async () => {
  using fleet = await fleetOfTwo();
  const { one, two } = fleet;
  await one.app.sweep();
  const holder = async () => {
    const { value } = await one.deps.kv.get(leaseKey("sweep"));
    return value && JSON.parse(new TextDecoder().decode(value)).holder;
  };
  const first = await holder();
  await two.app.sweep();
  assert.equal(await holder(), first);
  await one.app.leave();
  assert.equal(await holder(), null);
  await two.app.sweep();
  const second = await holder();
  assert.notEqual(second, first);
  // The process dies: its lease ends.
  await one.clock.advance(29_000);
  await one.app.sweep();
  assert.equal(await holder(), second);
  await one.clock.advance(2_000);
  await one.app.sweep();
  assert.equal(await holder(), first);
});

Deno.test("fleet: when the process that sweeps dies, another one sweeps within seconds", async () => {
  using fleet = await fleetOfTwo();
  const { one, two, beat } = fleet;
  await beat();
  await one.app.sweep();
  const holder = async () => {
    const { value } = await one.deps.kv.get(leaseKey("sweep"));
    return value && JSON.parse(new TextDecoder().decode(value)).holder;
  };
  const first = await holder();
  for (let n = 0; n < 14; n++) {
    await two.clock.advance(500);
    await two.app.beat();
  }
  await two.app.sweep();
  assert.notEqual(await holder(), first);
});

Deno.test("fleet: what a process that does not sweep held is freed by the one that does", async () => {
  using fleet = await fleetOfTwo();
  const { one, two } = fleet;
  await one.deposit("ada", "1");
  await one.app.sweep();
  await startAnswer(two, "ada");
  // It dies, so that nobody renews its hold.
  const kv = one.deps.kv;
  assert.equal((await kv.list({ prefix: holdingPrefix, limit: 10 })).length, 1);
  two.app.running.cutAll(Object.assign(new Error("dead"), { status: 503 }) as never);
  await one.clock.advance(61_000);
  await one.app.sweep();
  assert.equal((await one.balance("ada")).held, "0");
});

Deno.test("fleet: a process that dies is not counted after seconds, and its row goes", async () => {
  using fleet = await fleetOfTwo({ limits: { key: { concurrent: 1 } } });
  const { one, two, beat } = fleet;
  for (const user of ["ada", "bob"]) await one.deposit(user, "1");
  await startAnswer(one, "ada");
  await beat();
  assert.equal((await ask(two, "bob")).status, 429);
  const rows = async () => (await two.deps.kv.list({ prefix: processesPrefix, limit: 10 })).length;
  assert.equal(await rows(), 2);
  await two.clock.advance(7_000);
  await two.app.beat();
  assert.equal((await ask(two, "bob")).status, 200);
  await two.clock.advance(60_000);
  await two.app.beat();
  assert.equal(await rows(), 1);
});

/** Erases a user while both processes, or only the first one, go on beating. */
async function forgetBeating(fleet: Awaited<ReturnType<typeof fleetOfTwo>>, beating: World[]) {
  let isDone = false;
  const forgotten = forgetWholly(fleet.one, { forfeit: true }).finally(() => isDone = true);
  while (!isDone) {
    await fleet.one.clock.advance(500);
    for (const world of beating) await world.app.beat();
    await settle();
  }
  return await forgotten;
}

Deno.test("fleet: what processes tell of running calls names no user", async () => {
  using fleet = await fleetOfTwo();
  const { one, two, beat } = fleet;
  await one.deposit(ada, "1");
  const { stream, text } = await startAnswer(two, ada);
  await beat();
  const rows = await one.deps.kv.list({ prefix: processesPrefix, limit: 10 });
  const told = rows.map(({ value }) => new TextDecoder().decode(value ?? new Uint8Array()));
  assert.ok(told.some((row) => row.includes(`"counts":{"${one.projectId}":1}`)), "it is told of");
  const processes = async () =>
    (await rowsNaming(one, ada)).filter((row) => row.startsWith('["process"'));
  assert.deepEqual(await processes(), []);
  // It dies after the response has ended, and before it told of that.
  stream.send(chunk({}, "stop"));
  stream.send("[DONE]");
  stream.end();
  await text;
  const before = one.clock.now();
  await forgetBeating(fleet, [one]);
  assert.deepEqual(await rowsNaming(one, ada), []);
  assert.ok(one.clock.now() - before < 10_000, `${one.clock.now() - before} ms`);
});

Deno.test("fleet: what processes tell of refused users names none of them", async () => {
  const limits = { user: { requestsPerMinute: 3 } };
  using fleet = await fleetOfTwo({ limits });
  const { one, two, beat } = fleet;
  await beat();
  for (let n = 0; n < 5; n++) await ask(two, ada);
  await beat();
  assert.equal((await ask(one, ada)).status, 429, "it counts in every process");
  const processes = (await rowsNaming(one, ada)).filter((row) => row.startsWith('["process"'));
  assert.deepEqual(processes, []);
  await forgetBeating(fleet, [one, two]);
  assert.deepEqual(await rowsNaming(one, ada), []);
});

Deno.test("fleet: in a store of one process alone nothing is told and no lease is taken", async () => {
  using world = await createWorld();
  await world.app.beat();
  await world.app.sweep();
  assert.equal((await world.deps.kv.list({ prefix: processesPrefix, limit: 10 })).length, 0);
  assert.equal((await world.deps.kv.get(leaseKey("sweep"))).value, null);
});

Deno.test("fleet: what a process of another version tells is used as far as it is understood", async () => {
  using fleet = await fleetOfTwo({ limits: { key: { concurrent: 2 } } });
  const { one, beat } = fleet;
  await one.deposit("ada", "1");
  const { body } = await one.json(`/v1/admin/projects/${one.projectId}/keys`, { key: adminKey });
  const keyId = body.keys.find(({ scopes }: { scopes: string[] }) => scopes.includes("chat")).id;
  const strange = [
    null,
    "text",
    {
      calls: { calls: [["pw_1"], null, 7], counts: "many", models: [7] },
      endpoints: { sub_1: 1 },
      more: [{}],
    },
    { keys: [1, 2], keys_running: { [keyId]: "2" }, sign_in: { "": null } },
    { keys_running: { [keyId]: 2 } },
  ];
  for (const [at, told] of strange.entries()) {
    const value = new TextEncoder().encode(JSON.stringify(told));
    const key = ["process", `prc_${at}`];
    await one.deps.kv.atomic({ checks: [], sets: [{ key, value }], deletes: [] });
  }
  await beat();
  assert.equal(one.logged.filter(({ event }) => event === "fleet_unreachable").length, 0);
  assert.equal((await ask(one)).status, 429, "two run elsewhere");
});
