import assert from "node:assert/strict";
import { fromBytes, toBytes } from "../../../src/base/json.ts";
import { keptConversationBytesMax, keptUserBytesMax } from "../../../src/base/limits.ts";
import { keptIdKey, keptTurnKey } from "../../../src/store/keys.ts";
import { createKeptTexts, keptHead } from "../../../src/store/kept_texts.ts";
import { emptyWrite, type Key, type Kv, type Row } from "../../../src/store/kv.ts";
import { listAfter } from "../../../src/store/scan.ts";
import { completion } from "../../support/upstream.ts";
import { put } from "../../support/verify.ts";
import { type Body, createWorld, type World } from "../../support/world.ts";

const path = "/v1/responses";
const models = {
  "test-model": { input: "1", output: "2", maxOutputTokens: 100, reasoning: false },
  free: { input: "0", output: "0", maxOutputTokens: 100 },
};
const project = {
  pricing: { models },
  upstream: { url: "https://upstream.test/v1", formats: ["chat"] },
};

/** A world whose store counts the turns that are read. */
async function countingWorld(env: Record<string, string> = {}) {
  const read = { turns: 0 };
  const count = (key: Key) => {
    if (key[0] === "kept_turn") read.turns++;
  };
  const wrapKv = (kv: Kv): Kv => ({
    ...kv,
    limits: kv.limits,
    get(key) {
      count(key);
      return kv.get(key);
    },
    getMany(keys) {
      keys.forEach(count);
      return kv.getMany(keys);
    },
  });
  const world = await createWorld({ project, wrapKv, env });
  world.upstream.reply(() => completion());
  await world.deposit("ada", "100");
  return { world, read };
}

const ask = (world: World, body: Body = {}, user = "ada") =>
  world.json(path, {
    body: { model: "test-model", user, input: "Hello", max_output_tokens: 10, ...body },
  });

/** A conversation of so many turns of 50,000 characters; returns the ids of its responses. */
async function converse(world: World, turns: number, more: Body = {}): Promise<string[]> {
  const ids: string[] = [];
  for (let turn = 0; turn < turns; turn++) {
    const input = "hello world ".repeat(4_200);
    const previous = ids.length > 0 ? { previous_response_id: ids.at(-1) } : {};
    const { status, body } = await ask(world, { input, ...previous, ...more });
    assert.equal(status, 200, JSON.stringify(body));
    ids.push(body.id);
  }
  return ids;
}

async function edit(world: World, key: Key, change: (row: Body) => Body | null): Promise<void> {
  const { value } = await world.deps.kv.get(key);
  const changed = change(fromBytes<Body>(value ?? new Uint8Array()));
  const write = emptyWrite();
  if (changed) write.sets.push({ key, value: toBytes(changed) });
  else write.deletes.push(key);
  await world.deps.committer.commit(write);
}

/** The rows of a response as version 0.9.0 wrote them: without any size. */
async function makeOld(world: World, ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    await edit(world, keptIdKey(world.projectId, id), ({ turn: _, ...row }) => row);
  }
}

Deno.test("kept limits: a conversation is not loaded for a user who cannot pay for its tokens", async () => {
  const { world, read } = await countingWorld();
  using _ = world;
  const ids = await converse(world, 6);
  const last = { previous_response_id: ids.at(-1), input: "And?" };
  read.turns = 0;
  // 25,000 words for each turn: the balance pays for some output, not for them.
  const { available } = await world.balance("ada");
  const charge = (Number(available) - 0.01).toFixed(9);
  await world.json("/v1/user/charge", { body: { user: "ada", amount: charge } });
  const refused = await ask(world, last);
  assert.equal(refused.response.headers.get("x-service-paywall"), "insufficient_funds");
  assert.equal(read.turns, 0);
  await world.deposit("ada", "10");
  const paid = await ask(world, last);
  assert.equal(paid.response.headers.get("x-service-paywall"), null);
  assert.equal(read.turns, 6);
});

Deno.test("kept limits: a conversation of version 0.9.0 reads on, and is counted from then on", async () => {
  const { world } = await countingWorld();
  using _ = world;
  const ids = await converse(world, 3);
  await makeOld(world, ids);
  const { status, body } = await ask(world, { previous_response_id: ids.at(-1), input: "And?" });
  assert.equal(status, 200, JSON.stringify(body));
  assert.equal(world.upstream.calls.at(-1)?.body.messages.length, 7);
  const { value } = await world.deps.kv.get(keptIdKey(world.projectId, body.id));
  const { turn } = fromBytes<Body>(value ?? new Uint8Array());
  assert.equal(turn.conversation.turns, 4);
  assert.ok(turn.conversation.bytes > 150_000);
});

for (const model of ["test-model", "free"]) {
  Deno.test(`kept limits: a conversation of ${model} has at most 4 MiB; then it says so by name`, async () => {
    const { world, read } = await countingWorld();
    using _ = world;
    const [first = ""] = await converse(world, 1, { model });
    await edit(world, keptIdKey(world.projectId, first), ({ turn, ...row }) => ({
      ...row,
      turn: { ...turn, conversation: { turns: 90, bytes: keptConversationBytesMax, tokens: 1 } },
    }));
    // The size of what is loaded counts, and not only what the row says.
    const grown = await ask(world, { model, previous_response_id: first, input: "And?" });
    assert.equal(grown.status, 200, JSON.stringify(grown.body));
    let id = first;
    let asked = await ask(world, { model, previous_response_id: id });
    for (let n = 0; n < 200 && asked.status === 200; n++) {
      id = asked.body.id;
      const input = "hello world ".repeat(4_200);
      asked = await ask(world, { model, previous_response_id: id, input });
    }
    assert.equal(asked.status, 400);
    assert.equal(asked.body.error.code, "context_length_exceeded");
    assert.equal(asked.body.error.param, "previous_response_id");
    assert.ok(asked.body.error.message.includes(id), asked.body.error.message);
    read.turns = 0;
    await ask(world, { model, previous_response_id: id });
    assert.equal(read.turns, 0);
  });
}

Deno.test("kept limits: an old conversation beyond them is not loaded whole", async () => {
  const { world, read } = await countingWorld();
  using _ = world;
  const ids = await converse(world, 3);
  await makeOld(world, ids);
  // A loop, as the longest conversation there can be; as 0.9.0 wrote its turns.
  const key = keptTurnKey(world.projectId, ids[0] ?? "");
  const { value } = await world.deps.kv.get(key);
  const texts = createKeptTexts(world.deps.config.secretsKeys, world.deps.randomBytes);
  assert.ok(value);
  const text = texts.textOf(key, value) ?? assert.fail();
  const turn = { ...keptHead<Body>(value), ...JSON.parse(text), previous: ids[2] };
  await put(world, key, toBytes(turn));
  read.turns = 0;
  const { status, body } = await ask(world, { previous_response_id: ids[2] });
  assert.equal(status, 400);
  assert.equal(body.error.code, "context_length_exceeded");
  assert.ok(read.turns * 50_000 < keptConversationBytesMax + 100_000, `${read.turns}`);
});

Deno.test("kept limits: an item that stands in the input many times counts each time", async () => {
  const { world } = await countingWorld();
  using _ = world;
  const long = "word ".repeat(8_000);
  world.upstream.once(() =>
    completion({ choices: [{ index: 0, message: { content: long }, finish_reason: "stop" }] })
  );
  const { body } = await ask(world);
  const reference = { type: "item_reference", id: body.output[0].id };
  const { status, body: refused } = await ask(world, { input: Array(500).fill(reference) });
  assert.equal(status, 400);
  assert.equal(refused.error.code, "context_length_exceeded");
  const few = await ask(world, { input: Array(5).fill(reference) });
  assert.equal(few.status, 200, JSON.stringify(few.body));
});

Deno.test("kept limits: loaded turns count in the memory for bodies, until their request ends", async () => {
  const { world } = await countingWorld({ BODIES_BYTES_MAX: String(20 * 1024 * 1024) });
  using _ = world;
  const ids = await converse(world, 40);
  const last = { previous_response_id: ids.at(-1), input: "And?" };
  let release = () => {};
  const held = new Promise<void>((resolve) => release = resolve);
  world.upstream.reply(() => held.then(() => completion()));
  const asking = Array.from({ length: 8 }, () => ask(world, last));
  await world.until(() => world.upstream.calls.length > 40);
  release();
  const statuses = (await Promise.all(asking)).map(({ status }) => status);
  assert.ok(statuses.includes(200) && statuses.includes(503), statuses.join());
  assert.equal((await ask(world, last)).status, 200);
});

Deno.test("kept limits: of one user's turns the oldest are removed beyond 20 MiB", async () => {
  const { world } = await countingWorld();
  using _ = world;
  const keptBytes = async () => {
    let bytes = 0;
    for (let after: Key | null = null;;) {
      const rows: Row[] = await listAfter(world.deps.kv, ["kept_turn"], { after, limit: 100 });
      for (const { value } of rows) bytes += value?.length ?? 0;
      if (rows.length < 100) return bytes;
      after = rows.at(-1)?.key ?? null;
    }
  };
  const first = (await ask(world)).body.id;
  await world.deposit("bob", "1");
  const ofBob = (await ask(world, {}, "bob")).body.id;
  for (let n = 0; n < 420; n++) {
    await ask(world, { model: "free", input: "hello world ".repeat(4_200) });
  }
  await world.until(async () => await keptBytes() <= keptUserBytesMax);
  const gone = await ask(world, { previous_response_id: first });
  assert.equal(gone.body.error?.code, "previous_response_not_found");
  assert.equal((await ask(world, { previous_response_id: ofBob }, "bob")).status, 200);
});
