import assert from "node:assert/strict";
import { runFarebox } from "../support/command.ts";
import { type Farebox, makeFolder, startFarebox } from "../support/process.ts";

const upstream = { UPSTREAM_URL: "https://api.test/v1", UPSTREAM_API_KEY: "sk-of-the-provider" };
const list = (farebox: Farebox, key: string) => farebox.call("/v1/admin/projects", { key });

Deno.test("dev admin key: with a provider's real key it is random, printed, and known to the commands", async () => {
  await using folder = await makeFolder();
  const KV_PATH = "data/dev.kv";
  const file = `${folder.path}/${KV_PATH}.admin-key`;
  const start = (more: Record<string, string>) =>
    startFarebox({ folder: folder.path, dev: true, env: { KV_PATH, ...more } });
  const run = ({ url }: Farebox) =>
    runFarebox(["projects", "list"], { folder: folder.path, url, env: { ADMIN_KEY: "" } });
  const keyIn = (output: string) => /as the operator with (admin_dev_\w{30,})\)/.exec(output)?.[1];
  let first = "";
  {
    await using farebox = await start(upstream);
    first = keyIn(farebox.output()) ?? assert.fail(farebox.output());
    assert.equal((await list(farebox, first)).status, 200);
    assert.equal((await list(farebox, "admin_dev")).status, 401);
    assert.equal((await farebox.call("/v1/models")).status, 200, "sk_dev is as before");
    assert.equal(await Deno.readTextFile(file), first);
    const { mode } = await Deno.stat(file);
    assert.equal((mode ?? 0) & 0o777, 0o600);
    const listed = await run(farebox);
    assert.equal(listed.code, 0, listed.complaint);
    assert.match(listed.printed, /Development/);
    assert.doesNotMatch(farebox.output(), /sk-of-the-provider/);
  }
  {
    await using farebox = await start(upstream);
    const second = keyIn(farebox.output()) ?? assert.fail(farebox.output());
    assert.notEqual(second, first);
    assert.equal((await list(farebox, first)).status, 401, "of an earlier start");
    assert.equal((await run(farebox)).code, 0);
  }
  {
    await using farebox = await start({});
    assert.equal((await list(farebox, "admin_dev")).status, 200);
    assert.equal((await run(farebox)).code, 0);
    await assert.rejects(Deno.stat(file), Deno.errors.NotFound);
  }
});
