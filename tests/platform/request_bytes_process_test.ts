import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { wav } from "../support/media.ts";
import { eventually, makeFolder, serviceEnv, startFarebox } from "../support/process.ts";
import { sleep } from "../support/traffic.ts";
import { adminKey } from "../support/world.ts";

const bytesOf = (text: string) => Buffer.from(text, "latin1");
const textOf = (bytes: Uint8Array) => Buffer.from(bytes).toString("latin1");

/** Each is a TCP segment of its own, in the middle of the file that a form carries. */
const hiddenRequests = [
  "POST / HTTP/1.1\r\nContent-Length: 1\r\nUpgrade: aaa\r\nHTTP2-Settings: AAEAAEAA\r\n\r\nx",
  "POST /v1/user/balance/deposit HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\n" +
  "Transfer-Encoding: chunked\r\nUpgrade: h2c\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
  "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
];

/** An upstream that keeps the files that it receives. */
function startTranscriber() {
  const files: Uint8Array[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const file = (await request.formData()).get("file");
    assert.ok(file instanceof File);
    files.push(await file.bytes());
    return Response.json({ text: "heard", usage: { type: "duration", seconds: 2 } });
  });
  const url = `http://127.0.0.1:${server.addr.port}`;
  return { url, files, [Symbol.asyncDispose]: () => server.shutdown() };
}

const pricing = { models: { "test-sound": { input: "0", output: "0", audioMinutes: "0.01" } } };
const multipart = "multipart/form-data; boundary=limit";

Deno.test("bytes: what looks like a request within a body goes to the upstream as it is, and is no request", async () => {
  await using folder = await makeFolder();
  await using upstream = startTranscriber();
  const env = { ADMIN_KEY: serviceEnv.ADMIN_KEY, UPSTREAM_URL: upstream.url };
  await using farebox = await startFarebox({ folder: folder.path, dev: true, env });
  const created = await farebox.json("/v1/admin/projects", {
    key: adminKey,
    body: { name: "Bytes", pricing },
  });
  const key = created.apiKey;
  await farebox.json("/v1/user/balance/deposit", { key, body: { user: "ada", amount: "1" } });

  const sound = textOf(await wav(2).bytes());
  const field = (name: string) => `--limit\r\nContent-Disposition: form-data; name="${name}"`;
  const segments = [
    `${field("model")}\r\n\r\ntest-sound\r\n${field("user")}\r\n\r\nada\r\n`,
    `${field("file")}; filename="a.wav"\r\nContent-Type: audio/wav\r\n\r\n${sound}`,
    ...hiddenRequests,
    "\r\n--limit--\r\n",
  ];
  const length = segments.join("").length;
  const head = (framing: string) =>
    `POST /v1/audio/transcriptions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n` +
    `Content-Type: ${multipart}\r\n${framing}\r\n\r\n`;
  const chunks = segments.map((text) => `${text.length.toString(16)}\r\n`);

  const { hostname, port } = new URL(farebox.url);
  using connection = await Deno.connect({ hostname, port: Number(port) });
  connection.setNoDelay();
  const exchange = async (sent: readonly string[]) => {
    for (const segment of sent) {
      await connection.write(bytesOf(segment));
      // What is written at once could arrive at once.
      await sleep(20);
    }
    return await readResponse(connection);
  };
  for (let at = 0; at < 2; at++) {
    const whole = await exchange([head(`Content-Length: ${length}`), ...segments]);
    assert.match(whole, /^HTTP\/1\.1 200 [^]*heard/);
    const sizes = segments.flatMap((text, at) => [chunks[at] ?? "", text, "\r\n"]);
    const chunked = await exchange([head("Transfer-Encoding: chunked"), ...sizes, "0\r\n\r\n"]);
    assert.match(chunked, /^HTTP\/1\.1 200 [^]*heard/);
  }
  const last = await exchange(["GET /v1/nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n"]);
  assert.match(last, /^HTTP\/1\.1 404 /, "the connection is still in step");

  const sent = sound + hiddenRequests.join("");
  assert.deepEqual(upstream.files.map((file) => textOf(file) === sent), Array(4).fill(true));
  const served = () =>
    [...farebox.output().matchAll(/"event":"request".*"method":"(\w+)".*"status":(\d+)/g)]
      .map(([, method, status]) => `${method} ${status}`).join(", ");
  await eventually(() => served().endsWith("GET 404"), { what: "the log" });
  assert.equal(served(), `POST 201, POST 200, ${"POST 200, ".repeat(4)}GET 404`);
});

/** One response; fails where more than that arrives. */
async function readResponse(connection: Deno.TcpConn): Promise<string> {
  const buffer = new Uint8Array(64 * 1024);
  let text = "";
  for (;;) {
    const read = await connection.read(buffer);
    assert.ok(read !== null, `ended with ${text}`);
    text += textOf(buffer.subarray(0, read));
    const at = text.indexOf("\r\n\r\n");
    if (at < 0) continue;
    const [, length] = /\r\ncontent-length: (\d+)/i.exec(text.slice(0, at)) ?? [];
    const end = length === undefined ? chunkedEnd(text) : at + 4 + Number(length);
    if (text.length < end) continue;
    assert.equal(text.length, end, text);
    return text;
  }
}

function chunkedEnd(text: string): number {
  const last = text.indexOf("\r\n0\r\n\r\n");
  return last < 0 ? Infinity : last + 7;
}

Deno.test("bytes: HTTP_UPGRADE of older versions has no effect, and the start says so", async () => {
  await using folder = await makeFolder();
  const env = { HTTP_UPGRADE: "ignore" };
  await using farebox = await startFarebox({ folder: folder.path, dev: true, env });
  assert.match(farebox.output(), /HTTP_UPGRADE is not a setting of Farebox, and has no effect/);
  assert.equal((await farebox.call("/healthz")).status, 200);
});
