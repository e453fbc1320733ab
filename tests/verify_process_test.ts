import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { accountsPrefix } from "../src/store/keys.ts";
import { databaseOf, makeFolder, serviceEnv, startFarebox } from "./support/process.ts";
import { makeProject } from "./support/traffic.ts";

const script = fileURLToPath(new URL("../scripts/verify_ledger.ts", import.meta.url));
const config = fileURLToPath(new URL("../deno.json", import.meta.url));

/** Runs the script as its task does, in a folder without a `.env`. */
async function run(folder: string, args: string[], env: Record<string, string>) {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--no-prompt",
      "--allow-net",
      "--allow-env",
      "--allow-read",
      "--config",
      config,
      script,
      ...args,
    ],
    cwd: folder,
    env: { ADMIN_KEY: "", BASE_URL: "", PORT: "", NO_COLOR: "1", ...env },
  }).output();
  const decoder = new TextDecoder();
  return { code, printed: decoder.decode(stdout), complaint: decoder.decode(stderr) };
}

Deno.test("verify process: the script says what it looked at, and exits 1 when anything is wrong", async () => {
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
      const [args, env, told] of [
        [[], {}, /ADMIN_KEY is not set/],
        [["--url", farebox.url], { ADMIN_KEY: other }, /401 .*key/],
        [["--url", "http://127.0.0.1:9", "--nonsense"], { ADMIN_KEY }, /--nonsense/],
      ] as const
    ) {
      const { code, complaint } = await run(folder.path, [...args], env);
      assert.equal(code, 1);
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

/** Leaves an account with less than its entries say. */
async function takeAway(folder: string): Promise<void> {
  using kv = await Deno.openKv(databaseOf(folder));
  for await (const { key, value } of kv.list<Uint8Array>({ prefix: [...accountsPrefix] })) {
    const account = JSON.parse(new TextDecoder().decode(value));
    const less = JSON.stringify({ ...account, balance: "500000000" });
    await kv.set(key, new TextEncoder().encode(less));
  }
}
