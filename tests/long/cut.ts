// Takes over half a minute, so it is no part of `deno task test`:
//   deno test -A tests/long/cut.ts
import assert from "node:assert/strict";
import { type Farebox, makeFolder, serviceEnv, startFarebox } from "../support/process.ts";
import { makeProject, readBooks, startSlowUpstream } from "../support/traffic.ts";

const minuteMs = 60_000;
const messages = [{ role: "user", content: "Hello" }];
const body = { model: "test-model", user: "ada", stream: true, messages };

async function paidProject(farebox: Farebox): Promise<string> {
  const key = await makeProject(farebox);
  await farebox.json("/v1/user/balance/deposit", { key, body: { user: "ada", amount: "1" } });
  return key;
}

Deno.test("process: a stop cuts calls that run too long, reports it, and charges them", async () => {
  await using folder = await makeFolder();
  await using upstream = startSlowUpstream(() => minuteMs);
  const env = { ...serviceEnv, UPSTREAM_URL: upstream.url };
  let key = "";
  {
    await using farebox = await startFarebox({ folder: folder.path, env });
    key = await paidProject(farebox);
    const response = await farebox.call("/v1/chat/completions", { key, body });
    const whole = response.text();
    farebox.signal("SIGTERM");
    const last = (await whole).trimEnd().split("\n\n").at(-1)?.slice(6) ?? "";
    assert.equal(JSON.parse(last).error.code, "server_shutdown");
    assert.equal((await farebox.ended).code, 0);
  }
  await using farebox = await startFarebox({ folder: folder.path, env });
  const { held, entries } = await readBooks(farebox, key, "ada");
  assert.equal(held, "0");
  assert.deepEqual(entries.map(({ kind }) => kind), ["deposit", "usage"]);
});
