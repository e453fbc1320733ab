import assert from "node:assert/strict";
import type { WebhookHttpResponse } from "../../src/deps.ts";
import { eventually } from "../support/process.ts";
import { startSender } from "../support/sender.ts";

/**
 * A receiver of raw bytes on this machine, which sends all that `answer` returns for each request.
 */
function startBare(answer: () => Iterable<string>) {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const open: Deno.Conn[] = [];
  const serve = async (connection: Deno.Conn) => {
    while (await connection.read(new Uint8Array(4_096)) !== null) {
      for (const text of answer()) {
        const bytes = new TextEncoder().encode(text);
        for (let sent = 0; sent < bytes.length;) {
          sent += await connection.write(bytes.subarray(sent));
        }
      }
    }
  };
  (async () => {
    for await (const connection of listener) {
      open.push(connection);
      serve(connection).catch(() => {});
    }
  })();
  return {
    connections: open,
    port: (listener.addr as Deno.NetAddr).port,
    [Symbol.dispose]() {
      listener.close();
      for (const connection of open) connection.close();
    },
  };
}

type Post = ReturnType<typeof startSender>;

function send(
  post: Post,
  port: number,
  name = "hooks.test",
  signal = AbortSignal.timeout(20_000),
): Promise<WebhookHttpResponse> {
  return post({
    url: new URL(`http://${name}:${port}/`),
    addresses: ["127.0.0.1"],
    headers: {},
    body: "{}",
    signal,
  });
}

/** This many mebibytes, and then a response after all. */
function* floodOf(head: string, text: string): Generator<string> {
  yield head;
  const part = text.repeat(Math.ceil(256 * 1024 / text.length));
  for (let n = 0; n < 16; n++) yield part;
  yield head === "" ? ok : "\r\na\r\n0\r\n\r\n";
}

const ok = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

const chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
const floods: [what: string, head: string, text: string, error: RegExp][] = [
  ["early hints", "", "HTTP/1.1 103 Early Hints\r\nlink: <a>\r\n\r\n", /more than 16 interim/],
  ["continue", "", "HTTP/1.1 100 Continue\r\n\r\n", /more than 16 interim/],
  ["a chunk's extension", `${chunked}1;`, "a", /status 200, but a chunk line that is too long/],
  ["chunk extensions", chunked, `1;${"a".repeat(4_000)}\r\na\r\n`, /sent too much/],
  ["trailers", `${chunked}0\r\n`, "a: b\r\n", /status 200, but the server sent too much/],
];

for (const [what, head, text, error] of floods) {
  Deno.test(`webhook receiver: one that sends ${what} without end is disconnected`, async () => {
    using receiver = startBare(() => floodOf(head, text));
    await assert.rejects(send(startSender(), receiver.port), error);
  });
}

Deno.test("webhook receiver: what arrives is counted for each request, and a few hints are accepted", async () => {
  const hint = "HTTP/1.1 103 Early Hints\r\nlink: <a>\r\n\r\n";
  const long = `HTTP/1.1 200 OK\r\ncontent-length: 9000\r\n\r\n${"x".repeat(9_000)}`;
  using receiver = startBare(() => [hint.repeat(16), long]);
  const post = startSender();
  for (let n = 0; n < 20; n++) assert.equal((await send(post, receiver.port)).status, 200);
  assert.equal(receiver.connections.length, 1);
});

Deno.test("webhook receiver: one that sends more than 16 interim responses is disconnected", async () => {
  using receiver = startBare(() => ["HTTP/1.1 102 Processing\r\n\r\n".repeat(17), ok]);
  await assert.rejects(send(startSender(), receiver.port), /more than 16 interim responses/);
});

Deno.test("webhook receiver: others, however many, do not end a delivery that is under way", async () => {
  const held = Promise.withResolvers<void>();
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    if (request.headers.get("host")?.startsWith("slow.test")) await held.promise;
    return new Response("ok");
  });
  const { port } = server.addr;
  const post = startSender();
  const slow = send(post, port, "slow.test");
  const others = Array.from({ length: 1_001 }, (_, n) => `other${n}.test`);
  for (let n = 0; n < others.length; n += 50) {
    await Promise.all(others.slice(n, n + 50).map((name) => send(post, port, name)));
  }
  held.resolve();
  assert.equal((await slow).status, 200);
  await server.shutdown();
});

/** A receiver that answers its first request, and does this with all later ones. */
function startFickle(later: "hangs" | "leaves") {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const seen = { requests: 0, open: 0 };
  const serve = async (connection: Deno.Conn) => {
    seen.open++;
    const buffer = new Uint8Array(4_096);
    for (let length; (length = await connection.read(buffer)) !== null;) {
      if (!new TextDecoder().decode(buffer.subarray(0, length)).startsWith("POST ")) continue;
      seen.requests++;
      if (seen.requests === 1) await connection.write(new TextEncoder().encode(ok));
      else if (later === "leaves") break;
    }
    seen.open--;
    connection.close();
  };
  (async () => {
    for await (const connection of listener) serve(connection).catch(() => {});
  })();
  return {
    seen,
    port: (listener.addr as Deno.NetAddr).port,
    [Symbol.dispose]: () => listener.close(),
  };
}

for (const later of ["hangs", "leaves"] as const) {
  Deno.test(`webhook receiver: one that ${later} after a first request gets the next one once, not twice`, async () => {
    using receiver = startFickle(later);
    const post = startSender();
    assert.equal((await send(post, receiver.port)).status, 200);
    const deadline = new AbortController();
    const failed = assert.rejects(send(post, receiver.port, "hooks.test", deadline.signal));
    if (later === "hangs") {
      await eventually(() => receiver.seen.requests === 2);
      deadline.abort();
    }
    await failed;
    await eventually(() => receiver.seen.open === 0);
    // Anything that it caused later would have arrived by then.
    await new Promise((resolve) => setTimeout(resolve, 300));
    assert.deepEqual(receiver.seen, { requests: 2, open: 0 });
  });
}

for (
  const [what, answer] of [
    ["a body behind a 204", "HTTP/1.1 204 No Content\r\ncontent-type: text/plain\r\n\r\nok"],
    ["a body behind the last 204", "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\nok"],
    ["more than it said", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokay"],
  ] as const
) {
  Deno.test(`webhook receiver: one that sends ${what} has accepted the delivery`, async () => {
    using receiver = startBare(() => [answer]);
    const { status } = await send(startSender(), receiver.port);
    assert.equal(Math.floor(status / 100), 2);
  });
}
