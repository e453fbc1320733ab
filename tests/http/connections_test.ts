import assert from "node:assert/strict";
import type { UpstreamRequest, UpstreamResponse } from "../../src/deps.ts";
import { createHttpClient } from "../../src/http/client.ts";
import type { ServerAddress } from "../../src/http/server_address.ts";
import type { HttpSocket } from "../../src/http/connection.ts";
import { Pace } from "../../src/http/pace.ts";

const decoder = new TextDecoder();

/** One connection, from the server's side. */
interface Line {
  server: ServerAddress;
  /** Everything that was received on it. */
  sent: string;
  closed: boolean;
  say(text: string): void;
}

/** A clock whose timers fire only when the test calls them. */
function createTimers() {
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
  return { timers, time, clock };
}

/** A client of servers that accept `bytesAtOnce` of what is sent, and respond as `react` says. */
function startClient(react: (line: Line) => unknown, bytesAtOnce = Infinity) {
  const lines: Line[] = [];
  const { timers, time, clock } = createTimers();
  const ask = createHttpClient((server) => {
    const { line, socket } = createLine(server, (line) => react(line), bytesAtOnce);
    lines.push(line);
    return Promise.resolve(socket);
  }, clock);
  return {
    lines,
    timers,
    time,
    ask: (url: string, more: Partial<UpstreamRequest> = {}) => {
      const { signal } = new AbortController();
      return ask({ url, method: "GET", headers: {}, body: null, signal, ...more });
    },
  };
}

function createLine(server: ServerAddress, react: (line: Line) => unknown, bytesAtOnce: number) {
  let said = new Uint8Array();
  let come = Promise.withResolvers<void>();
  const line: Line = {
    server,
    sent: "",
    closed: false,
    say(text) {
      said = Uint8Array.from([...said, ...new TextEncoder().encode(text)]);
      come.resolve();
    },
  };
  const socket: HttpSocket = {
    async read(into) {
      if (said.length === 0 && !line.closed) await come.promise;
      if (line.closed) throw new Error("closed");
      const length = Math.min(said.length, into.length);
      into.set(said.subarray(0, length));
      said = said.subarray(length);
      come = Promise.withResolvers();
      return length;
    },
    write(bytes) {
      const taken = bytes.subarray(0, bytesAtOnce);
      line.sent += decoder.decode(taken);
      if (taken.length === bytes.length) react(line);
      return Promise.resolve(taken.length);
    },
    close() {
      line.closed = true;
      come.resolve();
    },
  };
  return { line, socket };
}

async function textOf({ body }: UpstreamResponse): Promise<string> {
  let text = "";
  for (let piece = await body.read(); piece; piece = await body.read()) {
    text += decoder.decode(piece);
  }
  return text;
}

/** Runs everything that does not wait for a timer. */
const settled = () => new Promise((resolve) => setTimeout(resolve, 0));

const ok = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

Deno.test("http: a server is reached at its URL's address, and kept for longer behind TLS", async () => {
  for (
    const [url, server, keptMs] of [
      ["http://a.test/v1", { hostname: "a.test", port: 80, secure: false }, 4_000],
      ["http://a.test:8443/v1", { hostname: "a.test", port: 8443, secure: false }, 4_000],
      ["http://[::1]/v1", { hostname: "::1", port: 80, secure: false }, 4_000],
      ["https://a.test/v1", { hostname: "a.test", port: 443, secure: true }, 30_000],
      ["https://[::1]:8443/v1", { hostname: "::1", port: 8443, secure: true }, 30_000],
    ] as const
  ) {
    const { ask, lines, timers } = startClient(({ say }) => say(ok));
    assert.equal(await textOf(await ask(url)), "ok");
    assert.deepEqual(lines.map(({ server }) => server), [server]);
    assert.match(
      lines[0]?.sent ?? "",
      new RegExp(`\r\nhost: ${RegExp.escape(new URL(url).host)}\r`),
    );
    assert.deepEqual(timers.map(({ ms }) => ms), [keptMs]);
  }
});

Deno.test("http: a request that the socket takes in parts is sent whole, and once", async () => {
  const { ask, lines } = startClient(({ say }) => say(ok), 3);
  const body = "What is the weather like in Zurich today?";
  assert.equal(await textOf(await ask("http://a.test/", { method: "POST", body })), "ok");
  assert.equal(
    lines[0]?.sent,
    `POST / HTTP/1.1\r\nhost: a.test\r\nuser-agent: Farebox\r\ncontent-length: 41\r\n\r\n${body}`,
  );
});

Deno.test("http: aborting a call after its end does not affect the next one on its connection", async () => {
  let says = ok;
  const { ask, lines } = startClient(({ say }) => say(says));
  const first = new AbortController();
  await textOf(await ask("http://a.test/", { signal: first.signal }));
  says = `${chunked}2\r\nok\r\n`;
  const second = await ask("http://a.test/");
  first.abort();
  lines[0]?.say("0\r\n\r\n");
  assert.equal(await textOf(second), "ok");
  assert.equal(lines.length, 1);
});

Deno.test("http: a call aborted before it starts is not sent, also where a connection is kept", async () => {
  const { ask, lines } = startClient(({ say }) => say(ok));
  await textOf(await ask("http://a.test/first"));
  const refused = ask("http://a.test/second", { signal: AbortSignal.abort(new Error("gone")) });
  await assert.rejects(refused, /gone/);
  assert.doesNotMatch(lines.map(({ sent }) => sent).join(""), /second/);
});

Deno.test("http: onSend is called before anything is sent: on a new connection, a kept one, and its replacement", async () => {
  const { ask, lines } = startClient((line) => {
    if (line.sent.includes("/third") && lines.length === 1) line.closed = true;
    line.say(ok);
  });
  const told: string[] = [];
  const call = async (path: string) => {
    const onSend = (sent: boolean) => {
      if (sent) told.push(lines.map(({ sent }) => sent).join(""));
      else told.pop();
    };
    await textOf(await ask(`http://a.test/${path}`, { onSend }));
  };
  await call("first");
  await call("second");
  assert.deepEqual(told.map((sent) => sent.match(/GET/g)?.length ?? 0), [0, 1]);
  await call("third");
  assert.deepEqual(told.map((sent) => sent.match(/GET/g)?.length ?? 0), [0, 1, 3]);
  assert.equal(lines.length, 2);
});

for (const extra of ["HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil", "\r\n"]) {
  Deno.test(`http: bytes after a response close the connection, also at the moment of the next request: ${JSON.stringify(extra)}`, async () => {
    const { ask, lines } = startClient(({ say }) => say(ok));
    await textOf(await ask("http://a.test/first"));
    lines[0]?.say(extra);
    assert.equal(await textOf(await ask("http://a.test/second")), "ok");
    assert.deepEqual(lines.map(({ closed }) => closed), [true, false]);
    assert.doesNotMatch(lines[0]?.sent ?? "", /second/);
    lines[1]?.say(extra);
    await settled();
    assert.equal(lines[1]?.closed, true, "while it waits, too");
  });
}

Deno.test("http: 16 KiB of a finished body's rest are read, and then the connection is closed", async () => {
  const { ask, lines } = startClient(({ say }) => say(chunked));
  const { body } = await ask("http://a.test/");
  body.finish();
  for (let kib = 0; kib < 15; kib++) lines[0]?.say(`400\r\n${"a".repeat(1024)}\r\n`);
  await settled();
  assert.equal(lines[0]?.closed, false, "the end may be near");
  lines[0]?.say(`400\r\n${"a".repeat(1024)}\r\n`);
  await settled();
  assert.equal(lines[0]?.closed, true);
});

Deno.test("http: a connection kept after a body's end in time is not closed later", async () => {
  const { ask, lines, timers } = startClient(({ say }) => say(`${chunked}2\r\nok\r\n`));
  const { body } = await ask("http://a.test/");
  await body.read();
  body.finish();
  lines[0]?.say("0\r\n\r\n");
  await settled();
  assert.deepEqual(timers.map(({ ms }) => ms), [4_000], "nothing but its time as a kept one");
  await ask("http://a.test/");
  assert.deepEqual([lines.length, timers.length], [1, 0], "nor that, once it is asked again");
});

Deno.test("http: a canceled body is at its end, also while it was being read", async () => {
  const { ask } = startClient(({ say }) => say(`${chunked}2\r\nok\r\n`));
  const { body } = await ask("http://a.test/");
  await body.read();
  const waiting = assert.rejects(body.read());
  body.cancel();
  await waiting;
  assert.equal(await body.read(), null);
});

Deno.test("http: a thousand connections to a server are kept, and no more", async () => {
  const { ask, lines } = startClient(({ say }) => say(ok));
  const calls = Array.from({ length: 1_001 }, () => ask("http://a.test/"));
  for (const response of await Promise.all(calls)) await textOf(response);
  assert.equal(lines.filter(({ closed }) => !closed).length, 1_000);
});

Deno.test("http: a large body waits for no turn, however many reads it takes", async () => {
  const size = 8 * 1024 * 1024;
  const head = `HTTP/1.1 200 OK\r\ncontent-length: ${size}\r\n\r\n`;
  const { clock } = createTimers();
  let left = size;
  const socket: HttpSocket = {
    async read(into) {
      if (left === size) {
        left--;
        return new TextEncoder().encodeInto(`${head}a`, into).written;
      }
      const length = Math.min(left, into.length);
      left -= length;
      return length;
    },
    write: (bytes) => Promise.resolve(bytes.length),
    close() {},
  };
  const ask = createHttpClient(() => Promise.resolve(socket), clock);
  const { signal } = new AbortController();
  const url = "http://a.test/";
  const { body } = await ask({ url, method: "GET", headers: {}, body: null, signal });
  let length = 0;
  for (let piece = await body.read(); piece; piece = await body.read()) length += piece.length;
  assert.equal(length, size);
});

Deno.test("http: reads get new turns with each tick, and further ones wait for the next", async () => {
  const { clock, time, timers } = createTimers();
  const pace = new Pace(clock);
  const free = () => {
    let reads = 0;
    while (reads < 1_000 && pace.turn() === null) reads++;
    return reads;
  };
  time.ms = 1_000;
  assert.equal(free(), 64);
  for (let tick = 0; tick < 3; tick++) {
    const turn = pace.turn();
    assert.deepEqual(timers.map(({ ms }) => ms), [40]);
    time.ms += 40;
    timers.pop()?.work();
    await turn;
    assert.equal(free(), 64);
  }
  timers.pop()?.work();
  for (let read = 0; read < 200; read++) {
    time.ms += 1;
    assert.equal(pace.turn(), null, "what is asked little is never waited for");
  }
});
