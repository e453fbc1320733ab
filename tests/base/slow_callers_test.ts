import assert from "node:assert/strict";
import { makeFolder, startFarebox } from "../support/process.ts";

const encoder = new TextEncoder();

/** A connection that has sent this, and sends nothing more. */
async function say(url: string, text: string): Promise<Deno.TcpConn> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port: Number(new URL(url).port) });
  await connection.write(encoder.encode(text)).catch(() => {});
  return connection;
}

/** What is received until the connection ends; `reset` when it is reset. */
async function read(connection: Deno.TcpConn): Promise<string> {
  const bytes = new Uint8Array(4096);
  try {
    const length = await connection.read(bytes);
    return length === null ? "ended" : new TextDecoder().decode(bytes.subarray(0, length));
  } catch {
    return "reset";
  } finally {
    connection.close();
  }
}

Deno.test("callers: three hundred connections that never complete headers or bodies delay no one", async () => {
  await using folder = await makeFolder();
  await using farebox = await startFarebox({ folder: folder.path, dev: true });
  const openings = [
    "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n",
    'POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer sk_dev\r\nContent-Length: 999\r\n\r\n{"user',
    "",
  ];
  const slow = await Promise.all(
    Array.from({ length: 300 }, (_, n) => say(farebox.url, openings[n % 3] ?? "")),
  );
  try {
    let ended = 0;
    for (const connection of slow) {
      connection.read(new Uint8Array(1)).catch(() => {}).finally(() => ended++);
    }
    for (let n = 0; n < 20; n++) {
      const { success } = await farebox.json("/v1/user/balance/deposit", {
        body: { user: "ada", amount: "1" },
      });
      assert.equal(success, true);
    }
    assert.equal(ended, 0, "they are all still waiting");
  } finally {
    slow.forEach((connection) => connection.close());
  }
});

Deno.test("callers: oversized headers are refused, and the next caller is served", async () => {
  await using folder = await makeFolder();
  await using farebox = await startFarebox({ folder: folder.path, dev: true });
  const head = "GET /healthz HTTP/1.1\r\nHost: x\r\n";
  const huge = await say(farebox.url, `${head}A: ${"a".repeat(1_000_000)}\r\n\r\n`);
  assert.match(await read(huge), /^(HTTP\/1.1 4|reset|ended)/);
  const many = Array.from({ length: 1_000 }, (_, n) => `h${n}: 1\r\n`).join("");
  assert.match(
    await read(await say(farebox.url, `${head}${many}\r\n`)),
    /^(HTTP\/1.1 4|reset|ended)/,
  );
  assert.equal((await farebox.json("/healthz")).status, "ok");
});
