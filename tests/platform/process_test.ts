import assert from "node:assert/strict";
import { killInTheMiddle } from "../support/killed.ts";
import {
  accountsHolding,
  databaseOf,
  eventually,
  type Farebox,
  freePort,
  makeFolder,
  refusedStart,
  serviceEnv,
  startFarebox,
} from "../support/process.ts";
import {
  makeProject,
  readBooks,
  sleep,
  startLongUpstream,
  startSlowUpstream,
} from "../support/traffic.ts";

Deno.test("process: development starts within 3 s, and its first request works as pasted", async () => {
  await using folder = await makeFolder();
  // Links in messages name the port, so the service must not choose it.
  const env = { PORT: String(freePort()) };
  await using farebox = await startFarebox({ folder: folder.path, dev: true, env });
  // The least of a few: other work on the machine slows a start down.
  let { startedInMs } = farebox;
  for (let left = 3; startedInMs >= 3_000 && left > 0; left--) {
    await using other = await makeFolder();
    await using another = await startFarebox({ folder: other.path, dev: true });
    startedInMs = Math.min(startedInMs, another.startedInMs);
  }
  assert.ok(startedInMs < 3_000, `started in ${startedInMs} ms`);
  const output = farebox.output();
  assert.match(output, new RegExp(`^Farebox listens on ${farebox.url}, .*key sk_dev$`, "m"));
  const command = /Try it:\n {2}(curl [^]*?)\n\n/.exec(output)?.[1];
  assert.ok(command, output);

  const unpaid = await paste(command);
  assert.equal(unpaid.choices[0].finish_reason, "stop");
  const link = /http:\S+/.exec(unpaid.choices[0].message.content)?.[0];
  assert.ok(link, unpaid.choices[0].message.content);
  assert.ok(link.startsWith(`${farebox.url}/t/`), link);
  const page = await fetch(link);
  assert.equal(page.status, 200);
  const places =
    /Console: (\S+) \(sign in with sk_dev\)\. Documentation: (\S+)/.exec(output)?.slice(1) ??
      [];
  assert.equal(places.length, 2, output);
  for (const place of places) assert.equal((await fetch(place)).status, 200, place);
  assert.match(await page.text(), /<html/);

  await farebox.json("/v1/user/balance/deposit", { body: { user: "ada", amount: "1" } });
  const { choices: [choice] } = await paste(command);
  assert.equal(choice.message.content, "You said: Hello");
});

/** Runs a command in the shell that comes with Deno, so that the test needs no other. */
async function paste(command: string) {
  const args = ["task", "--quiet", "--eval", command];
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), { args }).output();
  const text = new TextDecoder().decode(stdout);
  assert.ok(text.startsWith("{"), text + new TextDecoder().decode(stderr));
  return JSON.parse(text);
}

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  Deno.test(`process: ${signal} lets a running stream finish, charges it, then exits with 0`, async () => {
    await using folder = await makeFolder();
    await using farebox = await startFarebox({ folder: folder.path, dev: true });
    await farebox.json("/v1/user/balance/deposit", { body: { user: "ada", amount: "9" } });
    const content = "word ".repeat(80);
    const response = await farebox.call("/v1/chat/completions", {
      body: {
        model: "sandbox/echo",
        user: "ada",
        stream: true,
        stream_options: { include_usage: true },
        messages: [{ role: "user", content }],
      },
    });
    const whole = response.text();
    // Where the test fails before it is read, that is its only error.
    whole.catch(() => {});
    await sleep(200);
    farebox.signal(signal);
    await eventually(() => isClosed(farebox), { withinMs: 10_000, what: "a closed port" });

    const events = (await whole).trimEnd().split("\n\n").map((frame) => frame.slice(6));
    assert.equal(events.pop(), "[DONE]");
    const chunks = events.map((data) => JSON.parse(data));
    const said = chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("");
    assert.equal(said, `You said: ${content}`);
    const endedAt = performance.now();
    assert.equal((await farebox.ended).code, 0);
    // A stop that waited for one would take 25 s.
    assert.ok(performance.now() - endedAt < 20_000, "idle connections keep nothing up");
    assert.equal(farebox.errors(), "");
    assert.equal((await accountsHolding(folder.path)).size, 0);

    await using next = await startFarebox({ folder: folder.path, dev: true });
    const { entries, held } = await readBooks(next, "sk_dev", "ada");
    assert.equal(held, "0");
    assert.deepEqual(entries.map(({ kind }) => kind), ["deposit", "usage"]);
    assert.equal(entries[1]?.amount, chunks.at(-1).usage.cost_exact);
    assert.equal(entries[1]?.id, response.headers.get("x-service-activity-id"));
  });
}

async function isClosed({ url }: Farebox): Promise<boolean> {
  try {
    (await Deno.connect({ hostname: "127.0.0.1", port: Number(new URL(url).port) })).close();
    return false;
  } catch (error) {
    assert.ok(error instanceof Deno.errors.ConnectionRefused, String(error));
    return true;
  }
}

Deno.test("process: SIGTERM lets a running complete response finish; a second one exits at once", async () => {
  await using folder = await makeFolder();
  await using upstream = startSlowUpstream((n) => (n === 0 ? 800 : 60_000));
  const env = { ...serviceEnv, UPSTREAM_URL: upstream.url };
  const start = () => startFarebox({ folder: folder.path, env });
  const messages = [{ role: "user", content: "Hello" }];
  const body = { model: "test-model", user: "ada", messages, max_tokens: 9 };
  let key = "";
  {
    await using farebox = await start();
    key = await makeProject(farebox);
    await farebox.json("/v1/user/balance/deposit", { key, body: { user: "ada", amount: "1" } });
    const answer = farebox.json("/v1/chat/completions", { key, body });
    await eventually(() => upstream.running === 1);
    farebox.signal("SIGTERM");
    assert.equal((await answer).usage.cost_exact, "0.00002");
    assert.equal((await farebox.ended).code, 0);
  }
  {
    await using farebox = await start();
    const { entries } = await readBooks(farebox, key, "ada");
    assert.deepEqual(entries.map(({ amount }) => amount), ["1", "0.00002"]);
    const broken = assert.rejects(farebox.call("/v1/chat/completions", { key, body }));
    await eventually(() => upstream.running === 1);
    farebox.signal("SIGTERM");
    await eventually(() => farebox.output().includes('"stopping"'));
    farebox.signal("SIGTERM");
    assert.equal((await farebox.ended).code, 130);
    await broken;
  }
  assert.equal((await accountsHolding(folder.path)).size, 1);
});

Deno.test("process: killed during many responses, it loses no money and keeps no hold", async () => {
  await killInTheMiddle();
});

Deno.test("process: a second one on the same file refuses to start, and tells why", async () => {
  await using folder = await makeFolder();
  await using farebox = await startFarebox({ folder: folder.path, dev: true });
  const { code, complaint } = await refusedStart({ folder: folder.path, dev: true });
  assert.equal(code, 1);
  assert.match(
    complaint,
    /^Farebox cannot start:\nKV_PATH \S+ is in use by another process. Stop it first$/m,
  );
  assert.ok(complaint.includes(databaseOf(folder.path)));
  assert.equal((await farebox.call("/healthz")).status, 200);
});

Deno.test("process: a link to a database that does not exist yet leads to the same lock", async () => {
  await using folder = await makeFolder();
  const options = { folder: folder.path, dev: true };
  const link = `${folder.path}/link.kv`;
  await Deno.symlink("farebox.kv", link);
  await using farebox = await startFarebox({ ...options, env: { KV_PATH: link } });
  const { complaint } = await refusedStart(options);
  assert.match(complaint, /is in use by another process. Stop it first$/m);
  assert.equal((await farebox.call("/healthz")).status, 200);
});

Deno.test("process: an invalid value refuses to start, named and not repeated", async () => {
  await using folder = await makeFolder();
  const secret = "short-and-secret";
  const faults: Record<string, Record<string, string>> = {
    PORT: { PORT: "80a" },
    BASE_URL: { BASE_URL: "farebox.example" },
    ADMIN_KEY: { ADMIN_KEY: secret },
    SECRETS_KEY: { SECRETS_KEY: secret },
    UPSTREAM_URL: { UPSTREAM_URL: `https://${secret}@model.example` },
    UPSTREAM_API_KEY: { UPSTREAM_API_KEY: secret },
    UPSTREAM_TIMEOUT_MS: { UPSTREAM_TIMEOUT_MS: "1e3" },
    UPSTREAM_IDLE_MS: { UPSTREAM_IDLE_MS: "10" },
    LOG_LEVEL: { LOG_LEVEL: "loud" },
  };
  for (const [name, env] of Object.entries(faults)) {
    const { code, complaint } = await refusedStart({
      folder: folder.path,
      env: { ...serviceEnv, ...env },
    });
    assert.equal(code, 1, complaint);
    assert.match(complaint, new RegExp(`Farebox cannot start:\n${name} `), complaint);
    assert.ok(!complaint.includes(secret), complaint);
  }
  const { complaint } = await refusedStart({ folder: folder.path });
  assert.match(complaint, /^BASE_URL is required/m);
  const open = await refusedStart({ folder: folder.path, dev: true, env: { HOST: "0.0.0.0" } });
  assert.match(open.complaint, /^HOST must be a loopback address/m);
});

Deno.test("process: a SECRETS_KEY that decrypts nothing refuses to start, and tells so", async () => {
  await using folder = await makeFolder();
  const options = (secretsKey: string) => ({
    folder: folder.path,
    env: { ...serviceEnv, SECRETS_KEY: secretsKey },
  });
  const other = btoa("fedcba9876543210fedcba9876543210");
  const begun = await startFarebox(options(serviceEnv.SECRETS_KEY));
  const stripe = { secretKey: "sk_test_of_the_owner", webhookSecret: "whsec_of_the_owner" };
  await begun.json("/v1/admin/projects", {
    key: serviceEnv.ADMIN_KEY,
    body: { name: "Test", stripe },
  });
  begun.signal("SIGKILL");
  await begun.ended;
  for (const wrong of [other, ""]) {
    const { code, complaint } = await refusedStart(options(wrong));
    assert.deepEqual([code, wrong], [1, wrong], complaint);
    assert.match(complaint, /cannot start:\nSECRETS_KEY decrypts none of the secrets/);
  }
  await using changed = await startFarebox(options(`${other},${serviceEnv.SECRETS_KEY}`));
  assert.equal((await changed.call("/readyz")).status, 200);
});

Deno.test("process: a response is sent in chunks, and with its length to a client without chunks", async () => {
  await using folder = await makeFolder();
  await using farebox = await startFarebox({ folder: folder.path, dev: true });
  const models = (version: string) =>
    `GET /v1/models HTTP/${version}\r\nhost: localhost\r\nauthorization: Bearer sk_dev\r\n\r\n`;
  await using connection = await connect(farebox);
  await connection.send(models("1.1"));
  await eventually(() => connection.received().endsWith("]}\r\n0\r\n\r\n"));
  const [head = "", size = "", json = ""] = connection.received().split(/\r\n\r\n|\r\n(?={)/);
  assert.match(head, /^HTTP\/1\.1 200 [^]*transfer-encoding: chunked/);
  assert.doesNotMatch(head, /content-length/);
  assert.equal(parseInt(size, 16), json.replace(/\r\n0$/, "").length);

  await using old = await connect(farebox);
  await old.send(models("1.0"));
  await eventually(() => old.received().endsWith("]}"));
  const [oldHead = "", body = ""] = old.received().split("\r\n\r\n");
  assert.match(oldHead, new RegExp(`^HTTP/1\\.0 200 [^]*content-length: ${body.length}`));
  assert.doesNotMatch(oldHead, /transfer-encoding/);
});

Deno.test("process: a body that is too large gets 413 while it is sent, and the service continues", async () => {
  await using folder = await makeFolder();
  await using farebox = await startFarebox({ folder: folder.path, dev: true });
  await using connection = await connect(farebox);
  const megabyte = new Uint8Array(1024 * 1024).fill(0x20);
  await connection.send(chatHead("transfer-encoding: chunked"));
  for (let i = 0; i < 21; i++) {
    await connection.send("100000\r\n", megabyte, "\r\n");
  }
  await connection.send("0\r\n\r\n", "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
  await eventually(() => connection.received().includes('{"status":"ok"'));
  assert.match(connection.received(), /^HTTP\/1\.1 413 [^]*"request_too_large"[^]*HTTP\/1\.1 200 /);

  // A reset by the server, which reads no further, may overtake its response.
  let refused = "";
  for (let left = 3; left > 0 && refused === ""; left--) {
    await using declared = await connect(farebox);
    const sending = (async () => {
      await declared.send(chatHead(`content-length: ${21 * megabyte.length}`));
      for (let i = 0; i < 21; i++) await declared.send(megabyte);
    })().catch(() => {});
    await sending;
    // Its response, or nothing where it was reset.
    await eventually(() => declared.received().includes("request_too_large"), { withinMs: 3_000 })
      .catch(() => {});
    refused = declared.received();
  }
  assert.match(refused, /^HTTP\/1\.1 413 [^]*connection: close[^]*"request_too_large"/);
  assert.equal((await farebox.call("/healthz")).status, 200);
});

Deno.test("process: a slow reader slows the upstream down, and gets everything", async () => {
  await using folder = await makeFolder();
  const pieces = 4_000;
  await using upstream = startLongUpstream({ pieces, pieceChars: 4_096 });
  const env = { ...serviceEnv, UPSTREAM_URL: upstream.url };
  await using farebox = await startFarebox({ folder: folder.path, env });
  const key = await makeProject(farebox, 10_000_000);
  await farebox.json("/v1/user/balance/deposit", { key, body: { user: "ada", amount: "50" } });
  const messages = [{ role: "user", content: "Go on" }];
  const response = await farebox.call("/v1/chat/completions", {
    key,
    body: { model: "test-model", user: "ada", stream: true, messages },
  });
  await sleep(1_000);
  assert.ok(upstream.sent < pieces, `${upstream.sent} pieces were read ahead`);
  const text = await response.text();
  assert.equal(text.match(/^data: \{/gm)?.length, pieces + 1);
  assert.ok(text.endsWith("data: [DONE]\n\n"));
  const { held, entries } = await readBooks(farebox, key, "ada");
  assert.equal(held, "0");
  assert.equal(entries[1]?.amount, "0.00002");
  assert.equal(farebox.errors(), "");
});

function chatHead(length: string): string {
  return "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n" +
    `authorization: Bearer sk_dev\r\ncontent-type: application/json\r\n${length}\r\n\r\n`;
}

/** A raw connection, for requests that no client would send. */
async function connect({ url }: Farebox) {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port: Number(new URL(url).port) });
  const encoder = new TextEncoder();
  let received = "";
  const reading = (async () => {
    for await (const text of connection.readable.pipeThrough(new TextDecoderStream())) {
      received += text;
    }
  })().catch(() => {});
  return {
    received: () => received,
    async send(...parts: (string | Uint8Array)[]) {
      for (const part of parts) {
        const bytes = typeof part === "string" ? encoder.encode(part) : part;
        for (let sent = 0; sent < bytes.length;) {
          sent += await connection.write(bytes.subarray(sent));
        }
      }
    },
    async [Symbol.asyncDispose]() {
      try {
        connection.close();
      } catch {
        // The other side has closed it.
      }
      await reading;
    },
  };
}

Deno.test("process: if the platform has a database, it is used without being named", async () => {
  await using folder = await makeFolder();
  const env = {
    ...serviceEnv,
    DENO_DEPLOY: "true",
    DENO_KV_DEFAULT_PATH: `${folder.path}/platform.kv`,
    KV_PATH: "",
  };
  let key: string;
  {
    await using first = await startFarebox({ folder: folder.path, env });
    key = await makeProject(first);
    await first.json("/v1/user/balance/deposit", { key, body: { user: "ada", amount: "1" } });
    const stoppedAt = performance.now();
    first.signal("SIGINT");
    assert.equal((await first.ended).code, 0);
    // Elsewhere it may wait 25 s for calls.
    assert.ok(performance.now() - stoppedAt < 20_000, "a stop waits for nothing there");
  }
  await using second = await startFarebox({ folder: folder.path, env });
  const { balance } = await second.json("/v1/user/balance?user=ada", { key });
  assert.equal(balance, "1");
});
