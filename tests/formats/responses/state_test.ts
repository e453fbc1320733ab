import assert from "node:assert/strict";
import { keptResponseLifetimeMs } from "../../../src/base/limits.ts";
import { forgetWholly } from "../../support/forget.ts";
import { type Body, createWorld, type World } from "../../support/world.ts";

const path = "/v1/responses";

interface KeptBody {
  user: string;
  body: Body;
}

/** An upstream that keeps responses, and notes whose response it was asked for. */
interface KeepingUpstream {
  kept: Map<string, KeptBody>;
  /** Ids that were named by someone else than their user. */
  foreign: string[];
  /** Requests other than new responses, as method and path. */
  asked: string[];
}

const usage = (input: number, output: number) => ({
  input_tokens: input,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: output,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: input + output,
});

function keepResponses(world: World): KeepingUpstream {
  const seen: KeepingUpstream = { kept: new Map(), foreign: [], asked: [] };
  let n = 0;
  world.upstream.reply(({ url, body }) => {
    const { pathname } = new URL(url);
    if (pathname !== "/v1/responses") {
      seen.asked.push(pathname);
      return Response.json({ id: pathname.split("/")[3], object: "response" });
    }
    const named = [body.previous_response_id ?? [], ...itemIds(body.input)].flat();
    for (const id of named) {
      const known = seen.kept.get(id);
      if (!known || known.user !== body.user) seen.foreign.push(id);
    }
    n++;
    const text = `Answer ${n}`;
    const whole = {
      id: `resp_${n}`,
      object: "response",
      created_at: 1_767_225_600,
      status: "completed",
      error: null,
      incomplete_details: null,
      model: "test-model",
      output: [{
        id: `msg_${n}`,
        type: "message",
        status: "completed",
        role: "assistant",
        content: [{ type: "output_text", text, annotations: [] }],
      }],
      usage: usage(1_000, 50),
    };
    if (body.store !== false) {
      seen.kept.set(whole.id, { user: body.user, body: whole });
      seen.kept.set(`msg_${n}`, { user: body.user, body: whole });
    }
    return Response.json(whole);
  });
  return seen;
}

function itemIds(input: unknown): string[] {
  if (!Array.isArray(input)) return [];
  return input.flatMap((item) => (item.type === "item_reference" ? [String(item.id)] : []));
}

const ask = (world: World, user: string, body: Body = {}) =>
  world.json(path, { body: { model: "test-model", user, input: "Hello", ...body } });

const reference = (id: string) => ({
  input: [{ type: "item_reference", id }, { role: "user", content: "And?" }],
});

async function twoUsers(): Promise<{ world: World; seen: KeepingUpstream }> {
  const world = await createWorld();
  for (const user of ["ada", "bob"]) await world.deposit(user, "1");
  return { world, seen: keepResponses(world) };
}

Deno.test("kept responses: their own user can continue them, by the response or by an item", async () => {
  const { world, seen } = await twoUsers();
  using _ = world;
  const first = await ask(world, "ada");
  assert.equal(first.status, 200, JSON.stringify(first.body));
  const second = await ask(world, "ada", { previous_response_id: "resp_1" });
  assert.equal(second.status, 200, JSON.stringify(second.body));
  const third = await ask(world, "ada", reference("msg_2"));
  assert.equal(third.status, 200, JSON.stringify(third.body));
  assert.equal(world.upstream.calls[1]?.body.previous_response_id, "resp_1");
  assert.deepEqual(seen.foreign, []);
});

Deno.test("kept responses: what a request continues is in its hold", async () => {
  const { world } = await twoUsers();
  using _ = world;
  await ask(world, "ada");
  const most = async (body: Body) => {
    let held = "0";
    world.upstream.once(async () => {
      held = (await world.balance("ada")).held;
      return Response.json({ error: { message: "not now" } }, { status: 500 });
    });
    await ask(world, "ada", { max_output_tokens: 20, ...body });
    return Number(held) * 1e6;
  };
  const alone = await most({});
  const continued = await most({ previous_response_id: "resp_1" });
  // 1,050 tokens of the first response, and the field itself.
  assert.ok(continued - alone >= 1_050 && continued - alone < 1_200, `${continued - alone}`);
  const referred = await most(reference("msg_1"));
  assert.ok(referred - alone >= 50 && referred - alone < 300, `${referred - alone}`);
});

const strangers: [string, (known: { response: string; item: string }) => Body][] = [
  ["a previous response", ({ response }) => ({ previous_response_id: response })],
  ["an item", ({ item }) => reference(item)],
  ["a response named as an item", ({ response }) => reference(response)],
  ["an item named as a response", ({ item }) => ({ previous_response_id: item })],
  ["an item without its type", ({ item }) => ({ input: [{ id: item }] })],
  [
    "an item among own ones",
    ({ item }) => ({
      input: [
        { type: "item_reference", id: "msg_2" },
        { type: "item_reference", id: item },
        { role: "user", content: "?" },
      ],
    }),
  ],
];
for (const [what, body] of strangers) {
  Deno.test(`kept responses: ${what} of another user is unknown, and reaches no upstream`, async () => {
    const { world, seen } = await twoUsers();
    using _ = world;
    await ask(world, "ada");
    await ask(world, "bob");
    const before = world.upstream.calls.length;
    for (const known of [{ response: "resp_1", item: "msg_1" }, { response: "r", item: "m" }]) {
      const refused = await ask(world, "bob", body(known));
      assert.equal(refused.status, 400, JSON.stringify(refused.body));
    }
    assert.equal(world.upstream.calls.length, before);
    assert.deepEqual(seen.foreign, []);
    assert.equal((await world.balance("bob")).held, "0");
  });
}

Deno.test("kept responses: a foreign and an unknown id get the same answer", async () => {
  const { world } = await twoUsers();
  using _ = world;
  await ask(world, "ada");
  const answers = await Promise.all(
    ["resp_1", "resp_9"].map(async (id) => {
      const { status, body } = await ask(world, "bob", { previous_response_id: id });
      return JSON.stringify([status, body]).replaceAll(id, "ID");
    }),
  );
  assert.equal(answers[0], answers[1]);
  assert.match(answers[0] ?? "", /previous_response_not_found/);
});

Deno.test("kept responses: what is not stored, or whose time is over, cannot be continued", async () => {
  const { world } = await twoUsers();
  using _ = world;
  await ask(world, "ada", { store: false });
  assert.equal((await ask(world, "ada", { previous_response_id: "resp_1" })).status, 400);
  await ask(world, "ada");
  await world.clock.advance(keptResponseLifetimeMs + 1);
  assert.equal((await ask(world, "ada", { previous_response_id: "resp_2" })).status, 400);
  await world.app.sweep();
  const left = await world.deps.kv.list({ prefix: ["kept_id"], limit: 9 });
  assert.deepEqual(left.map(({ key }) => key), []);
});

const operations: [string, string, string][] = [
  ["GET", "", "read"],
  ["POST", "/cancel", "canceled"],
  ["GET", "/input_items?limit=2&order=asc", "listed"],
  ["DELETE", "", "deleted"],
];
for (const [method, suffix, done] of operations) {
  Deno.test(`kept responses: one is ${done} by its own user only`, async () => {
    const { world, seen } = await twoUsers();
    using _ = world;
    await ask(world, "ada");
    const act = (user: string, id = "resp_1") =>
      world.call(`${path}/${id}${suffix}`, { method, headers: { "x-service-user": user } });
    for (const [user, id] of [["bob", "resp_1"], ["ada", "resp_9"], ["ada", "msg_1"]] as const) {
      const refused = await act(user, id);
      assert.equal(refused.status, 404);
      await refused.body?.cancel();
    }
    assert.deepEqual(seen.asked, []);
    const allowed = await act("ada");
    assert.equal(allowed.status, 200);
    assert.equal((await allowed.json()).id, "resp_1");
    assert.equal(seen.asked.length, 1);
    const again = await ask(world, "ada", { previous_response_id: "resp_1" });
    assert.equal(again.status, method === "DELETE" ? 400 : 200);
  });
}

Deno.test("kept responses: an id with a slash or a query stays within its path", async () => {
  const { world, seen } = await twoUsers();
  using _ = world;
  await ask(world, "ada");
  for (const id of ["..%2Fmodels", "resp_1%2Fcancel", "resp_1%3Fx=1", "%00", "a".repeat(4_000)]) {
    const refused = await world.call(`${path}/${id}?user=ada`, { method: "GET" });
    assert.ok(refused.status === 404 || refused.status === 400, `${id}: ${refused.status}`);
    await refused.body?.cancel();
  }
  assert.deepEqual(seen.asked, []);
});

Deno.test("kept responses: another project's are unknown too", async () => {
  const { world } = await twoUsers();
  using _ = world;
  await ask(world, "ada");
  const other = await world.makeProject();
  const refused = await world.json(path, {
    key: other.apiKey,
    body: { model: "test-model", user: "ada", input: "Hi", previous_response_id: "resp_1" },
  });
  assert.equal(refused.status, 400);
});

Deno.test("kept responses: no sequence of requests by two users crosses their conversations", async () => {
  for (let seed = 1; seed <= 40; seed++) {
    const { world, seen } = await twoUsers();
    using _ = world;
    const random = numbers(seed);
    const pick = <T>(list: readonly T[]) => list[Math.floor(random() * list.length)];
    for (let step = 0; step < 12; step++) {
      const user = pick(["ada", "bob"]) ?? "ada";
      const id = pick([...seen.kept.keys(), "resp_0", "msg_0"]) ?? "resp_0";
      const body = random() < 0.5 ? { previous_response_id: id } : reference(id);
      const isOwn = seen.kept.get(id)?.user === user;
      const fits = id.startsWith("resp_") === "previous_response_id" in body;
      const { status } = await ask(world, user, random() < 0.3 ? {} : body);
      assert.ok(status === 200 || status === 400);
      if (status === 400) assert.ok(!isOwn || !fits, `seed ${seed}: ${user} ${id}`);
    }
    assert.deepEqual(seen.foreign, [], `seed ${seed}`);
  }
});

Deno.test("kept responses: a forgotten user's ids are erased", async () => {
  const { world } = await twoUsers();
  using _ = world;
  await ask(world, "ada");
  await forgetWholly(world, { forfeit: true }, "ada");
  assert.deepEqual(await world.deps.kv.list({ prefix: ["kept_id"], limit: 9 }), []);
});

function numbers(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 1_103_515_245 + 12_345) % 2_147_483_648) / 2_147_483_648;
}
