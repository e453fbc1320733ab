import assert from "node:assert/strict";
import { eventually, makeFolder, serviceEnv, startFarebox } from "../support/process.ts";
import { caPath, receiverEnv, startReceiver } from "../support/receiver.ts";
import { startSender } from "../support/sender.ts";
import { makeProject } from "../support/traffic.ts";
import { killUnderLoad } from "../support/webhook_kills.ts";

const signal = () => AbortSignal.timeout(30_000);

Deno.test("webhook process: kills under load lose no event", async () => {
  const ledger = await killUnderLoad(4);
  console.log(ledger);
  assert.equal(ledger.lost, 0);
  assert.ok(ledger.acknowledged > 10, `${ledger.acknowledged}`);
});

Deno.test("webhook process: a delivery over TLS, retried by the clock, through a clean stop", async () => {
  await using folder = await makeFolder();
  await using receiver = startReceiver();
  const env = { ...serviceEnv, ...receiverEnv, WEBHOOK_BACKOFF_BASE_MS: "300" };
  await using farebox = await startFarebox({ folder: folder.path, env });
  const key = await makeProject(farebox);
  const { subscription } = await farebox.json("/v1/webhooks/subscriptions", {
    key,
    body: { url: receiver.url, events: ["*"] },
  });
  receiver.secret = subscription.secret;
  let tries = 0;
  receiver.answer = () => new Response("no", { status: ++tries < 3 ? 503 : 200 });
  await farebox.json("/v1/user/balance/deposit", { key, body: { user: "ada", amount: "1" } });
  await eventually(() => tries === 3, { what: "the third try" });
  await eventually(async () => {
    const { logs } = await farebox.json("/v1/webhooks/logs", { key });
    return logs[0].status === "success" && logs[0].attempts === 3;
  });
  assert.equal(receiver.forged, 0);
  let arrived = false;
  const stopping = Promise.withResolvers<void>();
  receiver.answer = async () => {
    arrived = true;
    await stopping.promise;
    return new Response("late");
  };
  await farebox.json("/v1/user/balance/deposit", { key, body: { user: "ada", amount: "2" } });
  await eventually(() => arrived);
  farebox.signal("SIGTERM");
  await eventually(() =>
    farebox.call("/healthz").then(({ body }) => body?.cancel()).then(() => false, () => true)
  );
  stopping.resolve();
  assert.equal((await farebox.ended).code, 0);
  await using again = await startFarebox({ folder: folder.path, env });
  const { logs } = await again.json("/v1/webhooks/logs", { key });
  assert.deepEqual([logs[0].status, logs[0].attempts], ["success", 1], "a stop waits for it");
});

Deno.test("webhook process: the connection goes to the checked address, TLS verified against the name", async () => {
  await using receiver = startReceiver();
  const post = startSender({ caCerts: [await Deno.readTextFile(caPath)] });
  const to = (host: string) => ({
    // No resolver knows these names: only the address that was checked leads there.
    url: new URL(`https://${host}:${receiver.port}/`),
    addresses: ["127.0.0.1"],
    headers: { "x-a": "1" },
    body: '{"event":{"id":"e","data":{}}}',
    signal: signal(),
  });
  assert.equal((await post(to("hooks.test"))).status, 200);
  await assert.rejects(post(to("wrong.test")), { fault: "tls_error", message: /another name/ });
  await assert.rejects(startSender()(to("hooks.test")), /certificate/);
  assert.equal(receiver.events.get("e"), 1);
});

Deno.test("webhook process: a redirect is not followed, and little of a body is read", async () => {
  await using receiver = startReceiver();
  const post = startSender({ caCerts: [await Deno.readTextFile(caPath)] });
  const request = () => ({
    url: new URL(receiver.url),
    addresses: ["127.0.0.1"],
    headers: {},
    body: '{"event":{"id":"e","data":{}}}',
    signal: signal(),
  });
  receiver.answer = () => new Response(null, { status: 307, headers: { location: receiver.url } });
  assert.equal((await post(request())).status, 307);
  assert.equal(receiver.events.get("e"), 1);
  let sent = 0;
  receiver.answer = () =>
    new Response(
      new ReadableStream({
        pull(controller) {
          controller.enqueue(new Uint8Array(64 * 1024).fill(120));
          if ((sent += 64) > 100 * 1024) controller.close();
        },
      }),
    );
  const { bodyHead } = await post(request());
  assert.equal(bodyHead.length, 1024);
  assert.ok(sent < 20 * 1024, `${sent} KiB of 100 MiB were sent`);
});

Deno.test("webhook process: a body that drips is cut by the one deadline", async () => {
  await using receiver = startReceiver();
  const post = startSender({ caCerts: [await Deno.readTextFile(caPath)] });
  let timer: ReturnType<typeof setInterval> | null = null;
  const deadline = new AbortController();
  let drips = 0;
  receiver.answer = () =>
    new Response(
      new ReadableStream({
        start: (controller) => {
          timer = setInterval(() => {
            controller.enqueue(new Uint8Array([120]));
            if (++drips === 5) deadline.abort();
          }, 50);
        },
        cancel: () => clearInterval(timer ?? undefined),
      }),
    );
  // Its first 1,024 bytes take a minute, and would be enough.
  await assert.rejects(post({
    url: new URL(receiver.url),
    addresses: ["127.0.0.1"],
    headers: {},
    body: '{"event":{"id":"e","data":{}}}',
    signal: deadline.signal,
  }));
  clearInterval(timer ?? undefined);
});

Deno.test("webhook process: a receiver that switches protocols has failed, at once", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const port = (listener.addr as Deno.NetAddr).port;
  const serving = listener.accept().then(async (connection) => {
    await connection.read(new Uint8Array(4_096));
    const head = "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n";
    await connection.write(new TextEncoder().encode(head));
    return connection;
  });
  const posted = startSender()({
    url: new URL(`http://127.0.0.1:${port}/`),
    addresses: ["127.0.0.1"],
    headers: {},
    body: "{}",
    signal: signal(),
  });
  await assert.rejects(posted, /switched protocols/);
  (await serving).close();
  listener.close();
});

Deno.test("webhook process: authorities of NODE_EXTRA_CA_CERTS are trusted as those of DENO_CERT are", async () => {
  await using folder = await makeFolder();
  await using receiver = startReceiver();
  const { DENO_CERT, ...others } = receiverEnv;
  await using elsewhere = await makeFolder();
  // The service's own permissions do not reach there.
  const NODE_EXTRA_CA_CERTS = `${elsewhere.path}/ca.pem`;
  await Deno.copyFile(DENO_CERT, NODE_EXTRA_CA_CERTS);
  const env = { ...serviceEnv, ...others, NODE_EXTRA_CA_CERTS };
  await using farebox = await startFarebox({ folder: folder.path, env });
  const key = await makeProject(farebox);
  const body = { url: receiver.url, events: ["*"] };
  await farebox.json("/v1/webhooks/subscriptions", { key, body });
  await farebox.json("/v1/user/balance/deposit", { key, body: { user: "ada", amount: "1" } });
  await eventually(() => receiver.events.size === 1, { what: "the delivery" });
  assert.doesNotMatch(farebox.output() + farebox.errors(), /authorities|ca\.pem/);
});
