import assert from "node:assert/strict";
import { soon } from "../../src/base/soon.ts";
import { PreparedBody } from "../../src/inference/prepared_body.ts";
import { readChatRequest } from "../../src/formats/chat/request.ts";
import { chat } from "../support/chat.ts";
import { createScriptedStore } from "../support/store.ts";
import { completion, usage } from "../support/upstream.ts";
import { createWorld } from "../support/world.ts";

const upstream = { maxTokensField: null, knownDialects: new Map() };

function asked(body: Record<string, unknown> = {}) {
  const messages = [{ role: "user", content: "Hello" }];
  return readChatRequest({ model: "m", messages, ...body }, { bytes: 64, allowedFields: [] });
}

Deno.test("first request: what was prepared is given out, once", async () => {
  const chat = asked();
  const request = new PreparedBody({ upstream, chat });
  request.prepare(7);
  await Promise.resolve();
  chat.body.model = "another";
  const { body } = await request.take(7);
  assert.deepEqual([JSON.parse(body).model, JSON.parse(body).max_tokens], ["m", 7]);
  const again = await request.take(7);
  assert.equal(JSON.parse(again.body).model, "another", "it is not kept");
});

Deno.test("first request: for another bound it is written anew, and the last one counts", async () => {
  const request = new PreparedBody({ upstream, chat: asked() });
  request.prepare(7);
  request.prepare(8);
  assert.equal(JSON.parse((await request.take(9)).body).max_tokens, 9);
  request.prepare(7);
  request.prepare(8);
  assert.equal(JSON.parse((await request.take(8)).body).max_tokens, 8);
});

Deno.test("first request: is written while the hold is, and sent once that is durable", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  await world.deposit("ada", "1");
  const order: string[] = [];
  const { stringify } = JSON;
  using _ = {
    [Symbol.dispose]: () => void (JSON.stringify = stringify),
  };
  JSON.stringify = (value: unknown, ...more: []) => {
    if (Object(value).max_tokens !== undefined && Object(value).messages) order.push("written");
    return stringify(value, ...more);
  };
  store.atomic = async (write, real) => {
    await new Promise((resolve) => setTimeout(resolve, 5));
    const version = await real(write);
    order.push("durable");
    return version;
  };
  world.upstream.once(() => {
    order.push("sent");
    return completion({ usage: usage(8, 5) });
  });
  const { status } = await chat(world);
  assert.equal(status, 200);
  assert.deepEqual(order, ["written", "durable", "sent", "durable"]);
});

Deno.test("soon: is made after what goes on now, and a fault of it is for whoever asks", async () => {
  const made: string[] = [];
  const value = soon(() => made.push("later"));
  made.push("now");
  await value;
  assert.deepEqual(made, ["now", "later"]);
  const fault = soon(() => {
    throw new Error("cannot be made");
  });
  // Nobody has asked yet: that alone ends no process.
  await new Promise((resolve) => setTimeout(resolve, 0));
  await assert.rejects(fault, /cannot be made/);
});
