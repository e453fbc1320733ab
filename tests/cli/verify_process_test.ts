import assert from "node:assert/strict";
import { accountsPrefix } from "../../src/store/keys.ts";
import { runFarebox } from "../support/command.ts";
import { databaseOf, makeFolder, serviceEnv, startFarebox } from "../support/process.ts";
import { makeProject } from "../support/traffic.ts";

/** Runs the command in a folder without a `.env`. */
const run = (folder: string, args: string[], env: Record<string, string>) =>
  runFarebox(["verify", ...args], { folder, env: { ADMIN_KEY: "", ...env } });

Deno.test("verify process: the script reports what it checked, and exits with 1 at any fault", async () => {
  await using folder = await makeFolder();
  const { ADMIN_KEY } = serviceEnv;
  const start = () => startFarebox({ folder: folder.path, env: serviceEnv });
  {
    await using farebox = await start();
    const key = await makeProject(farebox);
    const body = { user: "ada", amount: "1" };
    await farebox.json("/v1/user/balance/deposit", { key, body });
    const port = new URL(farebox.url).port;
    const well = await run(folder.path, [], { ADMIN_KEY, PORT: port });
    assert.equal(well.code, 0, well.complaint);
    assert.match(well.printed, /^Looked at in \d+\.\d s:\n.*1 accounts\n.*1 entries\n/s);
    assert.match(well.printed, /Everything holds\.\n$/);
    const json = await run(folder.path, ["--json", "--url", `${farebox.url}/`], { ADMIN_KEY });
    assert.deepEqual(JSON.parse(json.printed).faults, []);
    const other = "another-key-of-at-least-32-characters";
    for (
      const [args, env, exitCode, told] of [
        [["--url", "https://farebox.test"], {}, 2, /ADMIN_KEY is not set/],
        [["--url", farebox.url], { ADMIN_KEY: other }, 1, /ADMIN_KEY must be the key/],
        [["--url", "http://127.0.0.1:9", "--nonsense"], { ADMIN_KEY }, 2, /--nonsense/],
      ] as const
    ) {
      const { code, complaint } = await run(folder.path, [...args], env);
      assert.equal(code, exitCode);
      assert.match(complaint, told);
    }
    farebox.signal("SIGTERM");
    await farebox.ended;
  }
  await takeAway(folder.path);
  await using farebox = await start();
  const wrong = await run(folder.path, ["--url", farebox.url], { ADMIN_KEY });
  assert.equal(wrong.code, 1);
  assert.match(
    wrong.printed,
    /1 fault:\n {2}account pw_\w+\/ada: entry act_\w+ has balanceAfter 1,/,
  );
});

/** Sets an account's balance below the sum of its entries. */
async function takeAway(folder: string): Promise<void> {
  using kv = await Deno.openKv(databaseOf(folder));
  for await (const { key, value } of kv.list<Uint8Array>({ prefix: [...accountsPrefix] })) {
    const account = JSON.parse(new TextDecoder().decode(value));
    const less = JSON.stringify({ ...account, balance: "500000000" });
    await kv.set(key, new TextEncoder().encode(less));
  }
}
