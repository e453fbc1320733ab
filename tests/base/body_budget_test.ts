import assert from "node:assert/strict";
import { BodyBudget } from "../../src/base/body_budget.ts";
import { readBytes } from "../../src/base/body.ts";
import { ApiError } from "../../src/base/errors.ts";
import { bodyDeadlineMs } from "../../src/base/limits.ts";
import { chatBody, completionsPath } from "../support/chat.ts";
import { settle } from "../support/clock.ts";
import { makeFolder, startFarebox } from "../support/process.ts";
import { chunk, fedStream } from "../support/upstream.ts";
import { mulberry32 } from "../support/random.ts";
import { createWorld, type World } from "../support/world.ts";

const mebibyte = 1024 * 1024;
const encoder = new TextEncoder();
const tooLarge = () => new ApiError(413, { message: "too large" });

/** A body that arrives in these pieces, and then stalls or ends. */
function pieces(parts: readonly Uint8Array[], ends: boolean): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      if (ends) controller.close();
    },
  });
}

const posted = (body: ReadableStream<Uint8Array>, length?: number) =>
  new Request("http://x/", {
    method: "POST",
    body,
    headers: length === undefined ? {} : { "content-length": String(length) },
  });

Deno.test("bodies: a large body is read as it was sent, however it is split", async () => {
  const random = mulberry32(3);
  const whole = Uint8Array.from({ length: 300_000 }, () => Math.floor(random() * 256));
  for (const longest of [whole.length, 100_000, 5_000]) {
    const parts: Uint8Array[] = [];
    for (let from = 0; from < whole.length; from += parts.at(-1)?.length ?? 0) {
      parts.push(whole.slice(from, from + 1 + Math.floor(random() * longest)));
    }
    for (const length of [undefined, whole.length]) {
      const request = posted(pieces(parts, true), length);
      const bytes = await readBytes(request, { bytesMax: 300_000, tooLarge });
      assert.deepEqual(bytes, whole, `${longest} ${length}`);
    }
    const request = posted(pieces(parts, true));
    await assert.rejects(readBytes(request, { bytesMax: 299_999, tooLarge }), { status: 413 });
  }
});

Deno.test("bodies: a body that is too large is read no further, and one that ends early is 400", async () => {
  let left = false;
  const endless = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new Uint8Array(10_000)),
    cancel: () => void (left = true),
  });
  await assert.rejects(readBytes(posted(endless), { bytesMax: 100_000, tooLarge }), {
    status: 413,
  });
  assert.equal(left, true);
  let sent = 0;
  const broken = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (sent++ < 3) controller.enqueue(new Uint8Array(10_000));
      else controller.error(new TypeError("connection reset"));
    },
  });
  const reading = readBytes(posted(broken), { bytesMax: 100_000, tooLarge });
  await assert.rejects(reading, { status: 400, code: "incomplete_body" });
  // An unhandled rejection would end the process.
  await settle();
});

Deno.test("bodies: a share that is kept is released once, however often release is called", async () => {
  const bodies = new BodyBudget(100_000, () => {});
  const open = (length: number) => {
    const request = posted(pieces([new Uint8Array(length)], true), length);
    return { request, read: readBytes(request, { bytesMax: 200_000, tooLarge, bodies }) };
  };
  const one = open(70_000);
  await one.read;
  const free = bodies.keep(one.request);
  free();
  free();
  await assert.rejects(open(170_000).read, { status: 503 });
  assert.equal((await open(100_000).read).length, 100_000);
});

Deno.test("bodies: their total memory is bounded, and released when a request ends", async () => {
  let refused = 0;
  const bodies = new BodyBudget(300_000, () => refused++);
  const open = (length: number, ends: boolean) => {
    const request = posted(pieces([new Uint8Array(length)], ends), 500_000);
    return { request, read: readBytes(request, { bytesMax: 500_000, tooLarge, bodies }) };
  };
  const [one, two] = [open(200_000, false), open(90_000, true)];
  assert.equal((await two.read).length, 90_000);
  await assert.rejects(open(20_000, true).read, { status: 503, code: "overloaded" });
  assert.equal(refused, 1);
  bodies.free(two.request);
  bodies.free(two.request);
  const three = open(100_000, true);
  assert.equal((await three.read).length, 100_000);
  const full = open(1, true);
  await assert.rejects(full.read, { status: 503 });
  assert.equal(full.request.bodyUsed, false, "there is no room, so nothing is read");
  bodies.free(one.request);
  await assert.rejects(one.read, { status: 503 });
  bodies.free(three.request);
  assert.equal((await open(300_000, true).read).length, 300_000);
});

Deno.test("bodies: a body that has not arrived when its request ends is abandoned, and holds no memory", async () => {
  let refused = 0;
  const bodies = new BodyBudget(300_000, () => refused++);
  const left = Promise.withResolvers<void>();
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new Uint8Array(100_000)),
    cancel: () => left.resolve(),
  });
  const request = posted(body, 200_000);
  const reading = readBytes(request, { bytesMax: 200_000, tooLarge, bodies });
  await settle();
  bodies.free(request);
  await left.promise;
  await assert.rejects(reading, { status: 503 }, "nobody takes a part of it for the whole");
  assert.equal(refused, 0, "there was room");
  const next = posted(pieces([new Uint8Array(300_000)], true), 300_000);
  assert.equal((await readBytes(next, { bytesMax: 300_000, tooLarge, bodies })).length, 300_000);
});

/** A chat with a body of this size: all of it arrives, or all but its end. */
function sendChat(world: World, bytes: number, { ends = true, stream = false } = {}) {
  const text = JSON.stringify(chatBody({ stream })).padEnd(bytes);
  const headers = {
    "content-type": "application/json",
    "content-length": `${bytes + (ends ? 0 : 1)}`,
  };
  return world.call(completionsPath, { raw: pieces([encoder.encode(text)], ends), headers });
}

Deno.test("bodies: a chat whose body does not fit is 503 at once, and small ones continue", async () => {
  using world = await createWorld({ env: { BODIES_BYTES_MAX: `${20 * mebibyte}` } });
  await world.deposit("ada", "100");
  const slow = sendChat(world, 15 * mebibyte, { ends: false });
  await settle();
  const refused = await sendChat(world, 8 * mebibyte);
  assert.equal(refused.status, 503);
  assert.equal(refused.headers.get("retry-after"), "1");
  assert.equal((await refused.json()).error.code, "overloaded");
  assert.equal((await sendChat(world, 1_000)).status, 200);
  await world.clock.advance(bodyDeadlineMs);
  assert.equal((await slow).status, 408);
  assert.equal((await sendChat(world, 8 * mebibyte)).status, 200, "there is room again");
});

Deno.test("bodies: a stream's share is kept until the stream ends", async () => {
  using world = await createWorld({ env: { BODIES_BYTES_MAX: `${20 * mebibyte}` } });
  await world.deposit("ada", "100");
  const fed = fedStream();
  world.upstream.once(() => fed.response);
  fed.send(chunk({ content: "Hi" }));
  const stream = await sendChat(world, 15 * mebibyte, { stream: true });
  assert.equal(stream.status, 200);
  assert.equal((await sendChat(world, 8 * mebibyte)).status, 503);
  fed.send(chunk({}, "stop"));
  fed.send("[DONE]");
  fed.end();
  assert.match(await stream.text(), /\[DONE\]/);
  assert.equal((await sendChat(world, 8 * mebibyte)).status, 200);
});

Deno.test("bodies: an announced length costs no memory", async () => {
  await using folder = await makeFolder();
  await using farebox = await startFarebox({ folder: folder.path, dev: true });
  const { hostname, port } = new URL(farebox.url);
  const resident = async () => {
    const status = await Deno.readTextFile(`/proc/${farebox.pid}/status`);
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
  };
  const before = await resident();
  const head = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sk_dev\r\n" +
    `Content-Type: application/json\r\nContent-Length: ${20 * mebibyte}\r\n\r\n{`;
  const connections = await Promise.all(Array.from({ length: 20 }, async () => {
    const connection = await Deno.connect({ hostname, port: Number(port) });
    await connection.write(encoder.encode(head));
    return connection;
  }));
  await farebox.json("/v1/models");
  await new Promise((resolve) => setTimeout(resolve, 500));
  const grown = await resident() - before;
  for (const connection of connections) connection.close();
  assert.ok(grown < 100, `${grown} MiB for 20 bytes`);
});
