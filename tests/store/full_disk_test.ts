import assert from "node:assert/strict";
import { runFarebox } from "../support/command.ts";
import {
  eventually,
  type Farebox,
  growFiles,
  makeFolder,
  startFarebox,
} from "../support/process.ts";
import { adminKey } from "../support/world.ts";

// Only Linux lets one process remove another's limit.
const ignore = Deno.build.os !== "linux";

Deno.test(
  "full disk: nothing is half done, reads continue, and writes work again once there is space",
  {
    ignore,
  },
  async () => {
    await using folder = await makeFolder();
    const env = { ADMIN_KEY: adminKey };
    const options = { folder: folder.path, dev: true, env, fileKiBMax: 1_000 };
    await using farebox = await startFarebox(options);
    const statusOf = async (path: string, body?: unknown, headers?: Record<string, string>) => {
      const given = body === undefined ? {} : { body };
      const response = await farebox.call(path, { ...given, ...(headers && { headers }) });
      return [response.status, JSON.parse(await response.text()).error?.code];
    };
    const deposit = (n: number) => {
      const body = { user: "ada", amount: "1", metadata: { note: "x".repeat(400) } };
      return statusOf("/v1/user/balance/deposit", body, { "idempotency-key": `order-${n}` });
    };
    const chat = (user: string) => {
      const messages = [{ role: "user", content: "Hello" }];
      return statusOf("/v1/chat/completions", { model: "sandbox/echo", user, messages });
    };

    let taken = 0;
    while ((await deposit(taken))[0] === 200) taken++;
    assert.ok(taken > 20, `${taken} deposits found room`);
    const full = [503, "store_unavailable"];
    assert.deepEqual([await deposit(taken + 1), await chat("ada")], [full, full]);
    const { balance } = await farebox.json("/v1/user/balance?user=ada");
    assert.equal(balance, String(taken), "what was answered with success, and no more");
    assert.deepEqual([await statusOf("/healthz"), await statusOf("/readyz")], [
      [200, undefined],
      full,
    ]);

    await growFiles(farebox);
    await eventually(async () => (await statusOf("/readyz"))[0] === 200);
    for (let n = 0; n < taken + 2; n++) assert.equal((await deposit(n))[0], 200);
    assert.equal((await farebox.json("/v1/user/balance?user=ada")).balance, String(taken + 2));
    assert.equal((await chat("ada"))[0], 200);
    const verified = await runFarebox(["verify", "--url", farebox.url], {
      folder: folder.path,
      env: { ADMIN_KEY: adminKey },
    });
    assert.match(verified.printed, /Everything holds\.\n$/);
  },
);

Deno.test(
  "full disk: the process lives on while a webhook's retry is due, and starts on a full disk",
  { ignore },
  async () => {
    await using folder = await makeFolder();
    const receiver = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen() {} },
      () => new Response(null, { status: 503 }),
    );
    const options = {
      folder: folder.path,
      dev: true,
      env: { ADMIN_KEY: adminKey, WEBHOOK_BACKOFF_BASE_MS: "1000" },
      fileKiBMax: 1_000,
    };
    try {
      await using farebox = await startFarebox(options);
      const url = `http://127.0.0.1:${receiver.addr.port}/`;
      const hook = { url, events: ["balance.*"] };
      const made = await farebox.call("/v1/webhooks/subscriptions", { body: hook });
      assert.equal(made.status, 201, await made.text());
      await fillDisk(farebox);
      await staysAlive(farebox, 6_000);
      farebox.signal("SIGKILL");
      await farebox.ended;
      await using again = await startFarebox(options);
      await fillDisk(again);
      await staysAlive(again, 6_000);
      await growFiles(again);
      await eventually(async () => (await again.call("/readyz")).status === 200);
    } finally {
      await receiver.shutdown();
    }
  },
);

/** Deposits until the store takes nothing more. */
async function fillDisk(farebox: Farebox): Promise<void> {
  for (let n = 0; n < 5_000; n++) {
    const body = { user: "ada", amount: "1", metadata: { note: "x".repeat(400) } };
    const response = await farebox.call("/v1/user/balance/deposit", { body });
    await response.body?.cancel();
    if (response.status === 503) return;
  }
  assert.fail("the disk does not get full");
}

/** Fails unless the process answers all the time. */
async function staysAlive(farebox: Farebox, ms: number): Promise<void> {
  const until = performance.now() + ms;
  while (performance.now() < until) {
    const { status } = await farebox.call("/healthz");
    assert.equal(status, 200);
    await new Promise((done) => setTimeout(done, 200));
  }
}
