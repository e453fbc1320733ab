import assert from "node:assert/strict";
import type { UpstreamRequest, UpstreamResponse } from "../../src/deps.ts";
import { createHttpClient } from "../../src/http/client.ts";
import { createConnect } from "../../src/platform/connect.ts";
import { eventually } from "../support/process.ts";

const connect = createConnect();

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A server of raw bytes, and every connection that it has accepted. */
interface Server extends Disposable {
  url: string;
  connections: Line[];
}

/** One connection, from the server's side. */
interface Line {
  /** Everything that was received on it. */
  received: string;
  /** The client has disconnected. */
  left: boolean;
  send(text: string): Promise<void>;
  close(): void;
}

/** Starts the server; `serve` is called for each request, once its head has arrived. */
function startServer(serve: (line: Line) => unknown): Server {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const connections: Line[] = [];
  const open: Deno.Conn[] = [];
  (async () => {
    for await (const connection of listener) {
      open.push(connection);
      const line: Line = {
        received: "",
        left: false,
        async send(text) {
          await connection.write(encoder.encode(text)).catch(() => {});
        },
        close: () => connection.close(),
      };
      connections.push(line);
      follow(connection, line, serve).catch(() => {}).finally(() => (line.left = true));
    }
  })();
  return {
    url: `http://127.0.0.1:${(listener.addr as Deno.NetAddr).port}`,
    connections,
    [Symbol.dispose]() {
      listener.close();
      for (const connection of open) {
        try {
          connection.close();
        } catch {
          // It is closed.
        }
      }
    },
  };
}

async function follow(
  connection: Deno.Conn,
  line: Line,
  serve: (line: Line) => unknown,
): Promise<void> {
  const buffer = new Uint8Array(64 * 1024);
  let seen = 0;
  for (;;) {
    const length = await connection.read(buffer);
    if (length === null) return;
    line.received += decoder.decode(buffer.subarray(0, length));
    const heads = line.received.split("\r\n\r\n").length - 1;
    for (; seen < heads; seen++) await serve(line);
  }
}

/** A client on a clock that only the test moves. */
function startClient() {
  const timers: { ms: number; work: () => void }[] = [];
  const time = { ms: 0 };
  const clock = {
    elapsed: () => time.ms,
    after(ms: number, work: () => void) {
      const timer = { ms, work };
      timers.push(timer);
      return () => void timers.splice(timers.indexOf(timer), 1);
    },
  };
  const ask = createHttpClient(connect, clock);
  return {
    timers,
    time,
    ask: (url: string, more: Partial<UpstreamRequest> = {}) =>
      ask({
        url,
        method: "GET",
        headers: {},
        body: null,
        signal: new AbortController().signal,
        ...more,
      }),
    /** Advances the clock by this time. */
    pass(ms: number) {
      for (const timer of timers.filter((timer) => timer.ms <= ms)) {
        timers.splice(timers.indexOf(timer), 1);
        timer.work();
      }
    },
  };
}

async function textOf({ body }: UpstreamResponse): Promise<string> {
  let text = "";
  for (let piece = await body.read(); piece; piece = await body.read()) {
    text += decoder.decode(piece);
  }
  return text;
}

const ok = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

Deno.test("http: one connection serves one request after another, a second one concurrent requests", async () => {
  using server = startServer((line) => line.send(ok));
  const { ask } = startClient();
  const body = '{"text":"zoë €"}';
  const headers = { "content-type": "application/json" };
  const first = await ask(`${server.url}/a?b=c`, { method: "POST", headers, body });
  const beside = await ask(`${server.url}/beside`);
  assert.deepEqual([await textOf(first), await textOf(beside)], ["ok", "ok"]);
  for (let n = 0; n < 3; n++) await textOf(await ask(`${server.url}/next`));
  assert.equal(server.connections.length, 2);
  const { host } = new URL(server.url);
  assert.equal(
    server.connections[0]?.received,
    `POST /a?b=c HTTP/1.1\r\nhost: ${host}\r\nuser-agent: Farebox\r\n` +
      `content-type: application/json\r\ncontent-length: 19\r\n\r\n${body}`,
  );
  assert.match(server.connections[1]?.received ?? "", /^GET \/beside .*\r\n\r\nGET \/next /s);
});

Deno.test("http: a connection serves the requests of one key only", async () => {
  using server = startServer((line) => line.send(ok));
  const { ask } = startClient();
  const askWith = async (authorization: string | null) => {
    const headers = authorization === null ? {} : { authorization };
    await textOf(await ask(server.url, { headers }));
  };
  for (const key of ["Bearer one", "Bearer two", null, "Bearer one", "Bearer two", null]) {
    await askWith(key);
  }
  const keys = server.connections.map(({ received }) =>
    received.match(/authorization: .*/g)?.map((line) => line.trim()) ?? []
  );
  assert.deepEqual(keys, [
    ["authorization: Bearer one", "authorization: Bearer one"],
    ["authorization: Bearer two", "authorization: Bearer two"],
    [],
  ]);
});

Deno.test("http: a server may send 16 interim responses, and no more", async () => {
  let times = 16;
  using server = startServer((line) =>
    line.send("HTTP/1.1 103 On its way\r\n\r\n".repeat(times) + ok)
  );
  const { ask } = startClient();
  assert.equal(await textOf(await ask(server.url)), "ok");
  times++;
  await assert.rejects(ask(server.url), /more than 16 interim responses/);
});

Deno.test("http: a connection that its server has closed is not used", async () => {
  using server = startServer(async (line) => {
    await line.send(ok);
    line.close();
  });
  const { ask } = startClient();
  for (let n = 0; n < 3; n++) {
    assert.equal(await textOf(await ask(server.url)), "ok");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.equal(server.connections.length, 3);
});

Deno.test("http: of the kept connections, only the one that its server closes is dropped", async () => {
  using server = startServer((line) => line.send(ok));
  const { ask } = startClient();
  const together = () =>
    Promise.all([1, 2, 3].map(async () => await textOf(await ask(server.url))));
  await together();
  assert.equal(server.connections.length, 3);
  const [, second] = server.connections;
  second?.close();
  await eventually(() => second?.left === true);
  await new Promise((resolve) => setTimeout(resolve, 20));
  await together();
  assert.equal(server.connections.length, 4, "two are used again");
});

Deno.test("http: of the kept connections, only the expired one is dropped", async () => {
  const short = ok.replace("\r\n", "\r\nkeep-alive: timeout=2\r\n");
  using server = startServer((line) => line.send(line === server.connections[0] ? short : ok));
  const { ask, pass } = startClient();
  const together = () =>
    Promise.all([1, 2].map(() => ask(server.url))).then((both) => both.map(textOf));
  await Promise.all(await together());
  pass(1_000);
  await eventually(() => server.connections.some(({ left }) => left));
  await new Promise((resolve) => setTimeout(resolve, 20));
  await textOf(await ask(server.url));
  assert.equal(server.connections.length, 2, "the other is used again");
});

Deno.test("http: if a kept connection closes as soon as it is used, its request goes by another", async () => {
  using server = startServer((line) => {
    if (line === server.connections[0] && line.received.includes("/second")) return line.close();
    return line.send(ok);
  });
  const { ask } = startClient();
  await textOf(await ask(`${server.url}/first`));
  assert.equal(
    await textOf(await ask(`${server.url}/second`, { method: "POST", body: "x" })),
    "ok",
  );
  assert.match(server.connections[1]?.received ?? "", /^POST \/second /);
});

for (
  const [what, leave] of [
    ["that is new", (line: Line) => line.received.includes("/first") || line.close()],
    ["that has begun to answer", async (line: Line) => {
      if (!line.received.includes("/second")) return;
      await line.send("HTTP/1.1 200 OK\r\n");
      line.close();
    }],
    ["that took its time", (line: Line, { time }: ReturnType<typeof startClient>) => {
      if (!line.received.includes("/second")) return;
      time.ms += 1_001;
      line.close();
    }],
  ] as const
) {
  Deno.test(`http: a request sent on a connection ${what} is sent once, also when its server closes`, async () => {
    const client = startClient();
    using server = startServer(async (line) => {
      await leave(line, client);
      await line.send(ok);
    });
    if (what !== "that is new") await textOf(await client.ask(`${server.url}/first`));
    await assert.rejects(client.ask(`${server.url}/second`, { method: "POST", body: "x" }));
    const sent = server.connections.map(({ received }) => received).join("");
    assert.equal(sent.split("POST /second").length - 1, 1);
  });
}

for (
  const [what, head, keptMs] of [
    ["that its server closes", "HTTP/1.1 200 OK\r\nConnection: Close\r\n", null],
    ["of HTTP/1.0", "HTTP/1.0 200 OK\r\n", null],
    ["that its server keeps for a second", "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\n", null],
    ["that its server keeps for 3 s", "HTTP/1.1 200 OK\r\nkeep-alive: max=9, timeout=3\r\n", 2_000],
    ["that nobody says anything of", "HTTP/1.1 200 OK\r\n", 4_000],
    ["of HTTP/1.0 that stays", "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n", 4_000],
  ] as const
) {
  Deno.test(`http: a connection ${what} is kept for ${keptMs ?? 0} ms`, async () => {
    using server = startServer((line) => line.send(`${head}content-length: 2\r\n\r\nok`));
    const { ask, timers, pass } = startClient();
    await textOf(await ask(server.url));
    assert.deepEqual(timers.map(({ ms }) => ms), keptMs === null ? [] : [keptMs]);
    pass(4_000);
    await eventually(() => server.connections[0]?.left === true, { what: "its end" });
    assert.equal(await textOf(await ask(server.url)), "ok");
    assert.equal(server.connections.length, 2);
  });
}

Deno.test("http: an aborted call closes its connection, before a response and in the middle of one", async () => {
  const half = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf";
  using server = startServer((line) => line.received.includes("/half") && line.send(half));
  const { ask } = startClient();
  const before = new AbortController();
  const asked = ask(server.url, { signal: before.signal });
  const refused = assert.rejects(asked);
  await eventually(() => server.connections[0]?.received !== undefined, { what: "the request" });
  before.abort();
  await refused;
  await eventually(() => server.connections[0]?.left === true, { what: "the connection's end" });
  const middle = new AbortController();
  const { body } = await ask(`${server.url}/half`, { signal: middle.signal });
  assert.equal(decoder.decode(await body.read() ?? undefined), "half");
  const reading = assert.rejects(body.read());
  middle.abort();
  await reading;
  await eventually(() => server.connections[1]?.left === true, { what: "the connection's end" });
  await assert.rejects(ask(server.url, { signal: AbortSignal.abort() }));
});

Deno.test("http: a response to a body that is still being sent is read, and its connection not kept", async () => {
  const answer = "HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig";
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const url = `http://127.0.0.1:${(listener.addr as Deno.NetAddr).port}`;
  const { ask, timers } = startClient();
  const asked = ask(url, { method: "POST", body: "a".repeat(20_000_000) });
  const connection = await listener.accept();
  await connection.read(new Uint8Array(1000));
  await connection.write(encoder.encode(answer));
  const response = await asked;
  assert.deepEqual([response.status, await textOf(response)], [413, "big"]);
  assert.deepEqual(timers, []);
  connection.close();
  listener.close();
});

Deno.test("http: a canceled body closes its connection, a finished one may keep it", async () => {
  const head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n";
  using server = startServer((line) => line.send(head));
  const { ask, pass } = startClient();
  const left = await ask(server.url);
  await left.body.read();
  left.body.cancel();
  await eventually(() => server.connections[0]?.left === true, { what: "its end" });

  const finished = await ask(server.url);
  await finished.body.read();
  finished.body.finish();
  await server.connections[1]?.send("0\r\n\r\n");
  await new Promise((resolve) => setTimeout(resolve, 20));
  const again = await ask(server.url);
  assert.equal(server.connections.length, 2, "it was kept");
  await again.body.read();
  again.body.finish();
  pass(1_000);
  await eventually(() => server.connections[1]?.left === true, {
    what: "an end that took too long",
  });
});

Deno.test("http: a header value that would start another header is not sent", async () => {
  using server = startServer((line) => line.send(ok));
  const { ask } = startClient();
  for (const value of ["a\r\nb: c", "a\nb", "zoë", "\0"]) {
    await assert.rejects(
      ask(server.url, { headers: { "x-a": value } }),
      /x-a contains characters that cannot be sent/,
    );
  }
  assert.equal(server.connections.length, 0);
});

Deno.test("http: beyond a number, small reads wait for their turn, so that others get theirs", async () => {
  using server = startServer(async (line) => {
    await line.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
    for (let n = 0; n < 80; n++) {
      await line.send("2\r\nok\r\n");
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    await line.send("0\r\n\r\n");
  });
  const { ask, timers, pass } = startClient();
  const reading = textOf(await ask(server.url));
  await eventually(() => timers.length === 1, { what: "the pace's tick" });
  let done = false;
  reading.then(() => (done = true));
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(done, false, "it waits for the tick");
  pass(40);
  assert.equal(await reading, "ok".repeat(80));
});
