import assert from "node:assert/strict";
import { runFarebox } from "../support/command.ts";
import { eventually, growFiles, makeFolder, startFarebox } from "../support/process.ts";
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
