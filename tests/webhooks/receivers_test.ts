import assert from "node:assert/strict";
import { attemptTo, type Logged } from "../support/attempt.ts";
import { hasIpv6, startRawReceiver } from "../support/raw_receiver.ts";
import { startSender } from "../support/sender.ts";
import { findCommand, testWith } from "../support/toolchains.ts";

const fixture = (name: string) => new URL(`../fixtures/tls/receivers/${name}`, import.meta.url);
const read = (name: string) => Deno.readTextFileSync(fixture(name));
const key = read("receiver.key");
const trusting = () => startSender({ caCerts: [read("ca.pem")] });

const ok = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

// 1. Responses, over plain HTTP.

const head = "HTTP/1.1 200 OK\r\n";
const chunks = "2\r\nok\r\n0\r\n\r\n";
const chunkedHead = `${head}transfer-encoding: chunked\r\n`;
const manyHeaders = `x-filler: ${"f".repeat(1_000)}\r\n`.repeat(20);

/** Responses that curl or Go take as a 200; the body is "ok". */
const accepted: [what: string, sent: string][] = [
  ["a plain 200", ok],
  ["Content-Length beside chunked", `${chunkedHead}content-length: 99\r\n\r\n${chunks}`],
  ["the same length twice", `${head}content-length: 2\r\nContent-Length: 2\r\n\r\nok`],
  ["the same length twice in one header", `${head}content-length: 2, 2\r\n\r\nok`],
  ["lines that end in LF", ok.replaceAll("\r\n", "\n")],
  ["chunks whose lines end in LF", `${chunkedHead}\r\n${chunks}`.replaceAll("\r\n", "\n")],
  ["20 KiB of headers", `${head}${manyHeaders}content-length: 2\r\n\r\nok`],
  ["no reason phrase", ok.replace(" OK", "")],
  ["two spaces before the status", ok.replace(" 200", "  200")],
  ["HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\nok"],
  ["chunks in HTTP/1.0", `${chunkedHead}\r\n${chunks}`.replace("1.1", "1.0")],
  ["no length, and a close", `${head}\r\nok`],
  ["a folded header", `${head}x-long: a\r\n b\r\ncontent-length: 2\r\n\r\nok`],
  ["a space before a colon", `${head}content-length : 2\r\n\r\nok`],
  ["a control character in a header", `${head}x-odd: a\u0001b\r\ncontent-length: 2\r\n\r\nok`],
  ["a space in a header's name", `${head}x odd: a\r\ncontent-length: 2\r\n\r\nok`],
  ["an early hint", `HTTP/1.1 103 Early Hints\r\nlink: <a>\r\n\r\n${ok}`],
  ["empty lines before the response", `\r\n\r\n${ok}`],
  ["no line after the last chunk", `${chunkedHead}\r\n2\r\nok\r\n0\r\n`],
  ["a chunk's size with leading zeros", `${chunkedHead}\r\n${"0".repeat(20)}${chunks}`],
  ["bytes after the response", `${ok}and more`],
];

for (const [what, sent] of accepted) {
  Deno.test(`receivers: ${what} is a success`, async () => {
    using receiver = startRawReceiver({ answer: () => sent, closes: () => true });
    const url = `http://localhost:${receiver.port}/`;
    assert.deepEqual(await attemptTo({ url, addresses: ["127.0.0.1"] }), {
      result: "2xx",
      responseCode: 200,
      error: null,
      bodyHead: "ok",
    });
  });
}

/** Responses that are none, and what the attempt log records: the status and the error. */
const refused: [what: string, sent: string, status: number | null, error: string][] = [
  [
    "two different lengths",
    `${head}content-length: 2\r\ncontent-length: 5\r\n\r\nok`,
    200,
    "invalid_response: status 200, but an invalid content-length: 2, 5",
  ],
  [
    "a length that is no number",
    `${head}content-length: two\r\n\r\nok`,
    200,
    "invalid_response: status 200, but an invalid content-length: two",
  ],
  [
    "an unknown coding",
    `${head}transfer-encoding: gzip, chunked\r\n\r\n`,
    200,
    "invalid_response: status 200, but a transfer-encoding other than chunked: gzip, chunked",
  ],
  [
    "a chunk without a size",
    `${chunkedHead}\r\nok\r\n`,
    200,
    "invalid_response: status 200, but a chunk without a size",
  ],
  [
    "another protocol",
    "SSH-2.0-OpenSSH_9.6\r\n\r\n",
    null,
    "invalid_response: not a status line of HTTP/1.1: SSH-2.0-OpenSSH_9.6",
  ],
  [
    "a line without a colon",
    `${head}what\u0007ever\r\n\r\n`,
    null,
    "invalid_response: not a header: what\ufffdever",
  ],
  [
    "a NUL in a header",
    `${head}x-odd: a\0b\r\n\r\n`,
    null,
    "invalid_response: not a header: x-odd: a\ufffdb",
  ],
  [
    "a switch of protocols",
    "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n",
    null,
    "invalid_response: the server switched protocols (101)",
  ],
  [
    "more headers than 64 KiB",
    `${head}${`x-filler: ${"f".repeat(1_000)}\r\n`.repeat(80)}\r\n`,
    null,
    "invalid_response: a response head that is too long",
  ],
  ["nothing", "", null, "connection_error: the connection closed before a response"],
  [
    "half a head",
    "HTTP/1.1 200 O",
    null,
    "connection_error: the connection closed in the middle of the response's head",
  ],
  [
    "a body that breaks off",
    `${head}content-length: 20\r\n\r\nok`,
    200,
    "connection_error: status 200, but the connection closed in the middle of the body",
  ],
  [
    "chunks that break off",
    `${chunkedHead}\r\n2\r\nok\r\n`,
    200,
    "connection_error: status 200, but the connection closed in the middle of the body",
  ],
  [
    "an error whose body breaks off",
    "HTTP/1.1 503 Unavailable\r\ncontent-length: 20\r\n\r\nok",
    503,
    "connection_error: status 503, but the connection closed in the middle of the body",
  ],
  ["a redirect", "HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n", 302, "redirect"],
  ["a refusal", "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", 404, "status 404"],
];

for (const [what, sent, status, error] of refused) {
  Deno.test(`receivers: ${what} is recorded as such`, async () => {
    using receiver = startRawReceiver({ answer: () => sent || null, closes: () => true });
    const url = `http://localhost:${receiver.port}/`;
    const logged = await attemptTo({ url, addresses: ["127.0.0.1"] });
    assert.equal(logged.responseCode, status);
    assert.ok(logged.error?.startsWith(error), logged.error ?? "");
    if (what.includes("breaks off")) assert.equal(logged.bodyHead, "ok");
  });
}

Deno.test("receivers: a timeout tells how far the attempt came", async () => {
  for (
    const [sent, status, error] of [
      [undefined, null, "timeout: no complete response within 300 ms"],
      [`${head}content-length: 9\r\n\r\n`, 200, "timeout: status 200, but no complete body within"],
    ] as const
  ) {
    using receiver = startRawReceiver({ answer: () => sent });
    const url = `http://localhost:${receiver.port}/`;
    const logged = await attemptTo({ url, addresses: ["127.0.0.1"], timeoutMs: 300 });
    assert.deepEqual([logged.result, logged.responseCode], ["timeout", status]);
    assert.ok(logged.error?.startsWith(error), logged.error ?? "");
  }
  // It accepts the connection, and never completes the handshake.
  using silent = startRawReceiver({ answer: () => undefined });
  const logged = await attemptTo({
    url: `https://hooks.test:${silent.port}/`,
    addresses: ["127.0.0.1"],
    timeoutMs: 300,
  });
  assert.equal(logged.error, "timeout: no connection within 300 ms");
});

// 2. Addresses.

const success: Logged = { result: "2xx", responseCode: 200, error: null, bodyHead: "ok" };

Deno.test("receivers: a dead address leads to the next one, whatever it died of", async () => {
  using alive = startRawReceiver({ hostname: "127.0.0.2", answer: () => ok });
  const { port } = alive;
  const url = `http://localhost:${port}/`;
  const sender = startSender();
  assert.deepEqual(
    await attemptTo({ url, addresses: ["127.0.0.3", "127.0.0.4", "127.0.0.2"], sender }),
    success,
  );
  assert.deepEqual(await attemptTo({ url, addresses: ["127.0.0.3"], sender }), {
    result: "connection_refused",
    responseCode: null,
    error: "connection_refused: nothing is listening there",
    bodyHead: null,
  });
});

const tlsOf = (cert: string) => ({ cert: read(cert), key });

Deno.test("receivers: a wrong certificate, and a handshake that never ends, lead to the next address", async () => {
  using alive = startRawReceiver({
    hostname: "127.0.0.2",
    tls: tlsOf("valid.pem"),
    answer: () => ok,
  });
  const { port } = alive;
  using _wrong = startRawReceiver({
    hostname: "127.0.0.3",
    port,
    tls: tlsOf("other_name.pem"),
    answer: () => ok,
  });
  using _silent = startRawReceiver({ hostname: "127.0.0.4", port, answer: () => undefined });
  const url = `https://hooks.test:${port}/`;
  for (const first of ["127.0.0.3", "127.0.0.4"]) {
    const logged = await attemptTo({ url, addresses: [first, "127.0.0.2"], sender: trusting() });
    assert.deepEqual(logged, success, first);
  }
  const { error } = await attemptTo({
    url,
    addresses: ["127.0.0.9", "127.0.0.3"],
    sender: trusting(),
  });
  assert.equal(
    error,
    "tls_error: the certificate is for another name (other.test); " +
      "another of its addresses: nothing is listening there",
  );
});

Deno.test("receivers: once a request was sent, no other address gets it", async () => {
  using first = startRawReceiver({ hostname: "127.0.0.2", answer: () => null });
  using second = startRawReceiver({
    hostname: "127.0.0.3",
    port: first.port,
    answer: () => ok,
  });
  const url = `http://localhost:${first.port}/`;
  const logged = await attemptTo({ url, addresses: ["127.0.0.2", "127.0.0.3"] });
  assert.equal(logged.result, "connection_error");
  assert.deepEqual([first.connections, second.connections], [1, 0]);
});

Deno.test({
  name: `receivers: IPv6 and IPv4 stand in for each other${hasIpv6() ? "" : " (NOT run: no IPv6)"}`,
  ignore: !hasIpv6(),
  async fn() {
    for (const [live, dead] of [["::1", "127.0.0.1"], ["127.0.0.1", "::1"]] as const) {
      using receiver = startRawReceiver({
        hostname: live,
        tls: tlsOf("valid.pem"),
        answer: () => ok,
      });
      const { port } = receiver;
      const sender = trusting();
      const url = `https://hooks.test:${port}/`;
      assert.deepEqual(await attemptTo({ url, addresses: [dead, live], sender }), success);
      const literal = `https://${live === "::1" ? "[::1]" : live}:${port}/`;
      assert.deepEqual(await attemptTo({ url: literal, addresses: [], sender }), success);
    }
  },
});

// 3. TLS.

const expiredText = "the certificate has expired";
const unknownText =
  "the certificate is from an unknown authority, or an intermediate certificate is missing";

const certificates: [cert: string, error: string | null][] = [
  ["valid.pem", null],
  ["with_intermediate.pem", null],
  ["expired.pem", expiredText],
  ["not_yet_valid.pem", "the certificate is not valid yet"],
  ["other_name.pem", "the certificate is for another name (other.test)"],
  ["no_name.pem", "the certificate is for another name"],
  ["for_clients.pem", "the certificate is not meant for a server"],
  ["unknown_authority.pem", unknownText],
  ["missing_intermediate.pem", unknownText],
  ["self_signed.pem", "the certificate is self-signed"],
  ["self_signed_authority.pem", "the certificate is self-signed"],
];

for (const [cert, error] of certificates) {
  Deno.test(`receivers: a certificate like ${cert} ${error ? "is a tls_error that tells why" : "is accepted"}`, async () => {
    using receiver = startRawReceiver({ tls: tlsOf(cert), answer: () => ok });
    const url = `https://hooks.test:${receiver.port}/`;
    const logged = await attemptTo({ url, addresses: ["127.0.0.1"], sender: trusting() });
    if (error === null) return assert.deepEqual(logged, success);
    assert.deepEqual(logged, {
      result: "tls_error",
      responseCode: null,
      error: `tls_error: ${error}`,
      bodyHead: null,
    });
    assert.ok(receiver.received.every((text) => text === ""), "nothing was sent");
  });
}

const alert = (code: number) => Uint8Array.of(21, 3, 3, 0, 2, 2, code);

const handshakes: [what: string, sent: Uint8Array | string | null, error: string][] = [
  ["no common version", alert(70), "no common TLS version: TLS 1.2 or 1.3 is required"],
  ["no common cipher", alert(40), "no common TLS version or cipher: TLS 1.2 or 1.3 is required"],
  ["no such name", alert(112), "the receiver does not know the host name"],
  ["no HTTP/1.1", alert(120), "no common protocol: HTTP/1.1 is required"],
  ["a missing client certificate", alert(116), "the receiver wants a client certificate"],
  ["an internal error", alert(80), "no secure connection could be established"],
  [
    "plain HTTP",
    "HTTP/1.1 400 Bad Request\r\n\r\n",
    "the receiver does not speak TLS on this port",
  ],
  ["SSH", "SSH-2.0-OpenSSH_9.6\r\n", "the receiver does not speak TLS on this port"],
  ["a close", null, "the connection closed during the handshake"],
];

for (const [what, sent, error] of handshakes) {
  Deno.test(`receivers: a handshake answered by ${what} is a tls_error that tells so`, async () => {
    using receiver = startRawReceiver({ answer: () => sent, closes: () => true });
    const url = `https://hooks.test:${receiver.port}/`;
    const logged = await attemptTo({ url, addresses: ["127.0.0.1"] });
    assert.deepEqual([logged.result, logged.error], ["tls_error", `tls_error: ${error}`]);
  });
}

const openssl = await findCommand("openssl");

for (
  const [what, options, error] of [
    ["TLS 1.3 and client certificates", ["-tls1_3", "-Verify", "1"], "wants a client certificate"],
    ["TLS 1.2 and client certificates", ["-tls1_2", "-Verify", "1"], "wants a client certificate"],
    ["TLS 1.1", ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], "no common TLS version"],
    ["CBC ciphers", ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA"], "no common TLS version"],
  ] as const
) {
  testWith(openssl, `receivers: a server of ${what} is a tls_error that tells so`, async (path) => {
    const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const { port } = listener.addr as Deno.NetAddr;
    listener.close();
    const file = (name: string) => fixture(name).pathname;
    const server = new Deno.Command(path, {
      args: ["s_server", "-accept", `127.0.0.1:${port}`, "-cert", file("valid.pem")]
        .concat("-key", file("receiver.key"), "-CAfile", file("ca.pem"), "-quiet", options),
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).spawn();
    const url = `https://hooks.test:${port}/`;
    const attempt = () => attemptTo({ url, addresses: ["127.0.0.1"], sender: trusting() });
    let logged = await attempt();
    for (let n = 0; n < 100 && logged.result === "connection_refused"; n++) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      logged = await attempt();
    }
    server.kill();
    await server.status;
    assert.equal(logged.result, "tls_error");
    assert.ok(logged.error?.includes(error), logged.error ?? "");
  });
}
