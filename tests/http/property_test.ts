import assert from "node:assert/strict";
import fc from "fast-check";
import { HttpConnection, type HttpSocket } from "../../src/http/connection.ts";
import { Pace } from "../../src/http/pace.ts";
import { always } from "../support/property.ts";

const encoder = new TextEncoder();
/** The client has received everything that it waits for. */
const clock = {
  elapsed: () => 0,
  after(_ms: number, work: () => void) {
    queueMicrotask(work);
    return () => {};
  },
};
const { signal } = new AbortController();

/** A server that has already sent these parts, and then disconnects. */
function socketOf(parts: Uint8Array[]): HttpSocket {
  const left = parts.filter((part) => part.length > 0);
  return {
    read(into) {
      const part = left[0];
      if (!part) return Promise.resolve(null);
      const length = Math.min(part.length, into.length);
      into.set(part.subarray(0, length));
      if (length === part.length) left.shift();
      else left[0] = part.subarray(length);
      return Promise.resolve(length);
    },
    write: (bytes) => Promise.resolve(bytes.length),
    close() {},
  };
}

/** A connection to it, the connections that can be reused, and how often one was closed. */
function connectionTo(parts: Uint8Array[]) {
  const kept: HttpConnection[] = [];
  const ends = { closed: 0 };
  const keep = (connection: HttpConnection) => void kept.push(connection);
  const socket: HttpSocket = { ...socketOf(parts), close: () => void ends.closed++ };
  const connection = new HttpConnection(socket, { clock, pace: new Pace(clock), keep });
  return { connection, kept, ends };
}

async function answerOf(connection: HttpConnection) {
  const { status, header, body } = await connection.request(new Uint8Array(), signal);
  const bytes: number[] = [];
  for (let piece = await body.read(); piece; piece = await body.read()) bytes.push(...piece);
  return { status, type: header("content-type"), bytes };
}

function cutAt(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const ends = places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b);
  return [0, ...ends].map((start, at) => bytes.slice(start, ends[at] ?? bytes.length));
}

function join(...parts: (string | Uint8Array)[]): Uint8Array {
  return Uint8Array.from(
    parts.flatMap((part) => [...(typeof part === "string" ? encoder.encode(part) : part)]),
  );
}

const lineEnd = fc.constantFrom("\r\n", "\n");
const bytes = fc.uint8Array({ maxLength: 40 });

const chunked = fc.record({
  pieces: fc.array(fc.uint8Array({ minLength: 1, maxLength: 40 }), { maxLength: 6 }),
  capitals: fc.boolean(),
  extension: fc.constantFrom("", ";a=b", ' ; name="quo;ted"'),
  trailers: fc.constantFrom([], ["x-sum: 1"], ["a: b", "c: d"]),
  end: lineEnd,
  header: fc.constantFrom(
    "Transfer-Encoding: Chunked",
    "transfer-encoding: identity, chunked",
    "Transfer-Encoding: chunked\r\nX-Beside: caf\u00e9 \u65e5\u672c\r\ntransfer-encoding: chunked",
  ),
}).map(({ pieces, capitals, extension, trailers, end, header }) => ({
  header,
  sent: join(
    ...pieces.flatMap((piece) => {
      const size = piece.length.toString(16);
      return [`${capitals ? size.toUpperCase() : size}${extension}${end}`, piece, end];
    }),
    `0${extension}${end}`,
    ...trailers.map((trailer) => `${trailer}${end}`),
    end,
  ),
  body: pieces.flatMap((piece) => [...piece]),
}));

const counted = bytes.map((body) => ({
  header: `Content-Length: ${body.length}`,
  sent: body,
  body: [...body],
}));

const framed = fc.oneof(chunked, counted);
const before = fc.constantFrom(
  "",
  "\r\n",
  "HTTP/1.1 100 Continue\r\n\r\n",
  "HTTP/1.1 103 Hints\r\na: b\r\n\r\n",
);
const cuts = fc.array(fc.nat(2_000), { maxLength: 30 });

Deno.test("http: a body is what was sent, however it is framed and split, twice on one connection", () =>
  always(
    500,
    fc.asyncProperty(
      framed,
      framed,
      before,
      lineEnd,
      cuts,
      async (one, other, early, end, places) => {
        const sent = ({ header, sent }: typeof one) =>
          join(
            early,
            ["HTTP/1.1 200 OK", "CONTENT-type:  text/plain ", header, "", ""].join(end),
            sent,
          );
        const { connection, kept } = connectionTo([
          ...cutAt(sent(one), places),
          ...cutAt(sent(other), places),
        ]);
        for (const { body } of [one, other]) {
          const answer = await answerOf(connection);
          assert.deepEqual(answer, { status: 200, type: "text/plain", bytes: body });
        }
        assert.equal(kept.length, 2);
      },
    ),
  ));

Deno.test("http: without a length, the body is all that arrives, and the connection is not kept", () =>
  always(
    200,
    fc.asyncProperty(bytes, cuts, async (body, places) => {
      const sent = join("HTTP/1.1 200 OK\r\n\r\n", body);
      const { connection, kept } = connectionTo(cutAt(sent, places));
      assert.deepEqual((await answerOf(connection)).bytes, [...body]);
      assert.equal(kept.length, 0);
    }),
  ));

Deno.test("http: a server that disconnects early has not responded, wherever it stops", () =>
  always(
    300,
    fc.asyncProperty(framed, fc.nat(), async ({ header, sent }, place) => {
      const whole = join(`HTTP/1.1 200 OK\r\n${header}\r\n\r\n`, sent);
      const { connection, kept } = connectionTo([whole.slice(0, place % whole.length)]);
      await assert.rejects(answerOf(connection), /the server disconnected/);
      assert.equal(kept.length, 0);
    }),
  ));

Deno.test("http: whatever a server sends is a response or an error, and is read to its end", () =>
  always(
    2_000,
    fc.asyncProperty(
      fc.constantFrom(
        "",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
      ),
      fc.array(
        fc.oneof(
          fc.constantFrom(
            "\r\n",
            "\n",
            ":",
            " ",
            "0",
            "5",
            "ff",
            ";",
            "content-length",
            "HTTP/1.1 ",
          ),
          fc.uint8Array({ maxLength: 6 }),
        ),
        { maxLength: 20 },
      ),
      cuts,
      async (start, noise, places) => {
        const { connection } = connectionTo(cutAt(join(start, ...noise), places));
        const answer = await answerOf(connection).catch((error) => error);
        if (answer instanceof Error) {
          return assert.match(answer.message, /^(the server |not |an? )/);
        }
        assert.ok(answer.status >= 200 && answer.status <= 999);
      },
    ),
  ));

const notAnswers: [string, string][] = [
  ["another protocol", "SSH-2.0-OpenSSH_9.6\r\n\r\n"],
  ["a changed protocol", "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n"],
  ["a folded header", "HTTP/1.1 200 OK\r\na: b\r\n c\r\ncontent-length: 0\r\n\r\n"],
  ["a blank before a colon", "HTTP/1.1 200 OK\r\ncontent-length : 0\r\n\r\n"],
  ["a NUL in a header", "HTTP/1.1 200 OK\r\na: b\0c\r\ncontent-length: 0\r\n\r\n"],
  ["a header that holds a line's end", "HTTP/1.1 200 OK\r\na: b\rc\r\ncontent-length: 0\r\n\r\n"],
  ["a length beyond all measure", `HTTP/1.1 200 OK\r\ncontent-length: ${"9".repeat(16)}\r\n\r\na`],
  ["two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"],
  ["a negative length", "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n"],
  ["a length with a sign", "HTTP/1.1 200 OK\r\ncontent-length: +1\r\n\r\na"],
  [
    "a coding we do not read",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
  ],
  ...["\v", "\f", "\xa0", "\x85"].map((blank): [string, string] => [
    `${JSON.stringify(blank)} beside a coding`,
    `HTTP/1.1 200 OK\r\ntransfer-encoding:${blank}chunked${blank}\r\n\r\n0\r\n\r\n`,
  ]),
  ["a space of Unicode in a list", "HTTP/1.1 200 OK\r\ncontent-length: 1,\xa01\r\n\r\na"],
  ...["chunked, identity", "identity, chunked, identity", "chunked, identity, chunked"].map((
    codings,
  ): [string, string] => [
    codings,
    `HTTP/1.1 200 OK\r\ntransfer-encoding: ${codings}\r\n\r\n0\r\n\r\n`,
  ]),
  ...["\0", "\v", "\r", "\x7f", "\x1b[31m"].map((control): [string, string] => [
    `${JSON.stringify(control)} in a status line`,
    `HTTP/1.1 200 O${control}K\r\ncontent-length: 0\r\n\r\n`,
  ]),
  ["chunks in 1.0", "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"],
  [
    "a size in another notation",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0x1\r\na\r\n",
  ],
  [
    "a chunk beyond all measure",
    `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1${"0".repeat(12)}\r\na`,
  ],
  ["a longer chunk than said", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n"],
  ["a head without an end", `HTTP/1.1 200 OK\r\na: ${"b".repeat(100_000)}`],
  [
    "a size without an end",
    `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;${"b".repeat(9_000)}`,
  ],
  [
    "a size with too much beside it",
    `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;${"b".repeat(5_000)}\r\na\r\n0\r\n\r\n`,
  ],
];

for (const [what, sent] of notAnswers) {
  Deno.test(`http: ${what} is an error, and the connection is not kept`, async () => {
    // Each character is one byte.
    const bytes = Uint8Array.from(sent, (character) => character.charCodeAt(0));
    const { connection, kept, ends } = connectionTo([bytes]);
    await assert.rejects(answerOf(connection), { name: "ProtocolError" });
    assert.deepEqual([kept.length, ends.closed], [0, 1]);
  });
}

Deno.test("http: a large head is read, and a repeated equal length is valid", async () => {
  const cookies = `set-cookie: ${"c".repeat(3_000)}\r\n`.repeat(10);
  const head = `HTTP/1.1 200 OK\r\n${cookies}content-length: 2\r\nContent-Length: 2\r\n\r\nok`;
  const { connection, kept } = connectionTo([encoder.encode(head)]);
  assert.deepEqual((await answerOf(connection)).bytes, [...encoder.encode("ok")]);
  assert.equal(kept.length, 1);
});

Deno.test("http: a status line without a reason is valid, and some statuses never have a body", async () => {
  for (const [status, body] of [[200, "ok"], [204, ""], [304, ""]] as const) {
    const sent = `HTTP/1.1 ${status}\r\ncontent-length: 2\r\n\r\n${body}`;
    const { connection, kept } = connectionTo([encoder.encode(sent)]);
    const answer = await answerOf(connection);
    assert.deepEqual([answer.status, answer.bytes], [status, [...encoder.encode(body)]]);
    assert.equal(kept.length, 1);
  }
});

Deno.test("http: header bytes beyond ASCII can be sent as a header again", async () => {
  const bytes = join(
    "HTTP/1.1 204 No Content\r\nx-any: ",
    Uint8Array.of(0x80, 0x9f, 0xff),
    "\r\n\r\n",
  );
  const { header } = await connectionTo([bytes]).connection.request(new Uint8Array(), signal);
  assert.equal(header("x-any"), "\x80\x9f\xff");
  assert.equal(new Headers({ "x-any": header("x-any") ?? "" }).get("x-any"), "\x80\x9f\xff");
});

Deno.test("http: bytes after a response close the connection", async () => {
  const two = "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n\r\n";
  const { connection, kept } = connectionTo([encoder.encode(two)]);
  assert.deepEqual((await answerOf(connection)).bytes, []);
  assert.equal(kept.length, 0);
});

Deno.test("http: a server that disconnects before its body is read is reported to the reader", async () => {
  const head = encoder.encode("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n");
  const sent = socketOf([head]);
  let reads = 0;
  const socket: HttpSocket = {
    ...sent,
    read: (into) => reads++ === 0 ? sent.read(into) : Promise.reject(new Error("reset")),
  };
  const connection = new HttpConnection(socket, { clock, pace: new Pace(clock), keep() {} });
  const { body } = await connection.request(new Uint8Array(), signal);
  // An unhandled rejection would end the process.
  await new Promise((resolve) => setTimeout(resolve, 10));
  await assert.rejects(body.read(), /reset/);
  assert.equal(reads, 2);
});
