import assert from "node:assert/strict";
import { openPostgres } from "../../src/platform/postgres.ts";
import { fromBytes } from "../../src/base/json.ts";
import { copyKey, leaseKey, processKey } from "../../src/store/keys.ts";
import { emptyWrite, type Kv } from "../../src/store/kv.ts";
import { denoKv } from "../../src/platform/deno_kv.ts";
import { copyRows } from "../../scripts/farebox/copy_rows.ts";
import { verifyLedger } from "../../scripts/verify_ledger.ts";
import { runFarebox } from "../support/command.ts";
import { MemoryStore } from "../simulation/memory_store.ts";
import { findPostgres, startPostgres, waits } from "../support/postgres.ts";
import {
  databaseOf,
  makeFolder,
  refusedStart,
  serviceEnv,
  startFarebox,
} from "../support/process.ts";
import { makeProject } from "../support/traffic.ts";
import { adminKey } from "../support/world.ts";

const ignore = findPostgres() === null;
const bytes = (text: string) => new TextEncoder().encode(text);

/** A file with a project and some deposits, and the project's key. */
async function makeFile(folder: string): Promise<string> {
  await using service = await startFarebox({ folder, env: serviceEnv });
  const key = await makeProject(service);
  for (let n = 0; n < 30; n++) {
    await service.json("/v1/user/balance/deposit", { key, body: { user: `u${n}`, amount: "2" } });
  }
  service.signal("SIGTERM");
  await service.ended;
  return key;
}

Deno.test({
  name: "copy: a file becomes a PostgreSQL database and a file again, with the same rows",
  ignore,
  async fn() {
    await using server = await startPostgres();
    await using folder = await makeFolder();
    const key = await makeFile(folder.path);
    const [url, password] = [server.url().replace(":a%20secret@", "@"), "a secret"];
    const copy = (from: string, to: string, more: string[] = [], input = "", env = {}) => {
      const args = ["--json", "copy", "--from", from, "--to", to, ...more];
      return runFarebox(args, { folder: folder.path, input, env });
    };
    const file = databaseOf(folder.path);
    const inUrl = await copy(file, server.url());
    assert.equal(inUrl.code, 2);
    assert.match(inUrl.complaint, /^--to has a password.*PGPASSWORD.*--to-password-file FILE.* - /);
    assert.ok(!`${inUrl.printed}${inUrl.complaint}`.includes("secret@"));
    const none = await copy(file, url);
    assert.equal(none.code, 1, none.complaint);
    const first = await copy(file, url, ["--to-password-file", "-"], `${password}\n`);
    assert.equal(first.code, 0, first.complaint);
    const there = JSON.parse(first.printed);
    assert.ok(!/a(%20| )secret/.test(`${first.printed}${first.complaint}`));
    await Deno.writeTextFile(`${folder.path}/password`, `${password}\n`);
    const byFile = ["--from-password-file", `${folder.path}/password`];
    const back = await copy(url, `${folder.path}/back.kv`, byFile);
    assert.equal(back.code, 0, back.complaint);
    assert.equal(JSON.parse(back.printed).rows, there.rows + 1, "the copy is in the audit trail");

    const again = await copy(file, url, [], "", { PGPASSWORD: password });
    assert.equal(again.code, 1);
    assert.match(again.complaint, /The target is not empty/);

    const env = { ...serviceEnv, KV_PATH: server.url() };
    await using service = await startFarebox({ folder: folder.path, env });
    const { balance } = await service.json("/v1/user/balance?user=u7", { key });
    assert.equal(balance, "2");
    assert.deepEqual((await verifyLedger({ url: service.url, adminKey })).faults, []);
  },
});

Deno.test({
  name: "copy: no service starts on an unfinished copy",
  ignore,
  async fn() {
    await using server = await startPostgres();
    await using folder = await makeFolder();
    const { kv } = await openPostgres(server.url(), { password: null, waits });
    await kv.atomic({ ...emptyWrite(), sets: [{ key: copyKey, value: bytes("{}") }] });
    kv.close();
    const env = { ...serviceEnv, KV_PATH: server.url() };
    const { complaint } = await refusedStart({ folder: folder.path, env });
    assert.match(complaint, /KV_PATH has an unfinished copy of another store/);
  },
});

Deno.test("copy: it refuses what it cannot copy, and says why", async () => {
  await using folder = await makeFolder();
  const env = { folder: folder.path };
  const refusal = async (from: string, to: string) => {
    const { code, complaint } = await runFarebox(["copy", "--from", from, "--to", to], env);
    assert.equal(code, 1, complaint);
    return complaint;
  };
  assert.match(await refusal("nothing.kv", "new.kv"), /nothing\.kv has no database/);
  await using service = await startFarebox({ folder: folder.path, env: serviceEnv });
  assert.match(await refusal("farebox.kv", "new.kv"), /farebox\.kv is in use/);
  service.signal("SIGTERM");
  await service.ended;
  assert.match(await refusal("farebox.kv", "farebox.kv"), /is in use, .* or as both stores/);
  const secret = "hunter2";
  const wrong: [store: string, why: RegExp][] = [
    ["postgres://h/db", /must name a user/],
    ["mysql://me:hunter2@h/db", /must be the path of a file/],
    ["postgres://me:s@hunter2@h/db", /more than one '@'/],
    ["postgres://me:p@h:hunter2/db", /must name a host/],
    ["postgres:/me:hunter2@h/db", /must be the path of a file/],
    ["https://me:hunter2@kv.test", /DENO_KV_ACCESS_TOKEN/],
    ["postgres://me:hunter2@h/db", /has a password/],
  ];
  for (const [store, why] of wrong) {
    for (const [option, args] of [["--to", ["farebox.kv", store]], ["--from", [store, "new.kv"]]]) {
      const [from = "", to = ""] = args ?? [];
      const ran = await runFarebox(["copy", "--from", from, "--to", to], env);
      assert.equal(ran.code, 2, ran.complaint);
      assert.match(ran.complaint, new RegExp(`^${option} .*${why.source}`), store);
      assert.ok(!`${ran.printed}${ran.complaint}`.includes(secret), ran.complaint);
    }
    const restored = await runFarebox(["restore", "x.backup", "--kv-path", store], env);
    assert.equal(restored.code, 1, restored.complaint);
    assert.ok(!`${restored.printed}${restored.complaint}`.includes(secret), restored.complaint);
  }
});

/** A store that fails after so many writes. */
function failingAfter(kv: Kv, writes: number): Kv {
  let left = writes;
  return {
    ...kv,
    atomic(write) {
      if (left-- <= 0) return Promise.reject(new Error("killed"));
      return kv.atomic(write);
    },
  };
}

Deno.test("copy: one that is interrupted goes on where it stopped, and leaves out what is a process's", async () => {
  const source = denoKv(await Deno.openKv(":memory:"));
  for (let n = 0; n < 2_000; n += 500) {
    const sets = Array.from({ length: 500 }, (_, at) => ({
      key: ["row", n + at],
      value: bytes("x".repeat((n + at) % 900)),
    }));
    await source.atomic({ ...emptyWrite(), sets });
  }
  const own = [processKey("prc_1"), leaseKey("sweep"), ["commit", "batch_1"]];
  const sets = own.map((key) => ({ key, value: bytes("own") }));
  await source.atomic({ ...emptyWrite(), sets });
  const target = new MemoryStore().kv;
  const copy = (kv: Kv) => copyRows({ source, target: kv, from: "a" }, () => {});
  await assert.rejects(copy(failingAfter(target, 4)), /killed/);
  const { value } = await target.get(copyKey);
  assert.ok(value && fromBytes<{ rows: number }>(value).rows > 500);
  await assert.rejects(
    copyRows({ source, target, from: "b" }, () => {}),
    /unfinished copy of a/,
  );
  assert.equal((await copy(target)).rows, 2_000);
  assert.equal((await target.get(copyKey)).value, null);
  assert.equal((await target.list({ prefix: [], limit: 3_000 })).length, 2_000);
  source.close();
});

Deno.test("copy: a target that differs at the end is reported", async () => {
  const source = new MemoryStore().kv;
  const target = new MemoryStore().kv;
  await source.atomic({ ...emptyWrite(), sets: [{ key: ["row", 1], value: bytes("one") }] });
  const forgetful: Kv = {
    ...target,
    atomic: (write) =>
      target.atomic({ ...write, sets: write.sets.filter(({ key }) => key[0] !== "row") }),
  };
  await assert.rejects(
    copyRows({ source, target: forgetful, from: "a" }, () => {}),
    /The copy differs at \["row",1\]/,
  );
});
