import assert from "node:assert/strict";
import pg from "pg";
import { openPostgres } from "../../src/platform/postgres.ts";
import { emptyWrite, type Kv, type Write } from "../../src/store/kv.ts";
import { encodeKey } from "../../src/store/key_bytes.ts";
import { findPostgres, hasStandbys, startPostgres, waits } from "../support/postgres.ts";
import { eventually } from "../support/process.ts";

const ignore = findPostgres() === null;
const open = (url: string) => openPostgres(url, { password: null, waits });
const set = (key: string, value = "x"): Write["sets"][number] => ({
  key: [key],
  value: new TextEncoder().encode(value),
});
const put = (kv: Kv, key: string, value = "x") =>
  kv.atomic({ ...emptyWrite(), sets: [set(key, value)] });
const bytesOf = (key: string) =>
  Uint8Array.from(encodeKey([key]), (character) => character.charCodeAt(0));

Deno.test({
  name: "postgres: a row that is only checked stays as it is until the write has landed",
  ignore,
  async fn() {
    await using server = await startPostgres();
    const { kv } = await open(server.url());
    const version = await put(kv, "checked");
    const other = new pg.Client(server.url());
    await other.connect();
    // Another writer has changed the row, and has not committed yet.
    await other.query("BEGIN");
    await other.query("UPDATE farebox_kv SET ver = ver + 1 WHERE k = $1", [
      Buffer.from(bytesOf("checked")),
    ]);
    let outcome: string | null | undefined;
    const checks = [{ key: ["checked"], version }];
    const writing = kv.atomic({ ...emptyWrite(), checks, sets: [set("written")] })
      .then((landed) => (outcome = landed));
    // It waits for the other writer: nobody can tell yet whether the check holds.
    await eventually(async () => {
      const waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
      return outcome !== undefined || await server.run(waits) !== "0";
    });
    assert.equal(outcome, undefined);
    await other.query("COMMIT");
    await other.end();
    assert.equal(await writing, null);
    assert.equal((await kv.get(["written"])).value, null);
    kv.close();
  },
});

Deno.test({
  name: "postgres: a number of a lost write that is counted anew is not taken for that write",
  ignore,
  async fn() {
    await using server = await startPostgres();
    const { kv } = await open(server.url());
    const lost = await put(kv, "a", "lost");
    // As on a standby that took over without the last write.
    await server.run("DELETE FROM farebox_kv");
    await server.run(
      "SELECT setval('farebox_version', (SELECT last_value FROM farebox_version), false)",
    );
    const next = await put(kv, "a", "next");
    assert.notEqual(next, lost);
    const stale = { ...emptyWrite(), checks: [{ key: ["a"], version: lost }], sets: [set("a")] };
    assert.equal(await kv.atomic(stale), null);
    kv.close();
  },
});

Deno.test({
  name:
    "postgres: after a failover, writes go on, and none believes what the old primary had alone",
  ignore: !hasStandbys(),
  async fn() {
    await using primary = await startPostgres({ settings: ["wal_level=replica"] });
    await using standby = await startPostgres({ standbyOf: primary });
    const both = primary.url().replace(
      /@[^/]+/,
      `@127.0.0.1:${primary.port},127.0.0.1:${standby.port}`,
    );
    const { kv } = await open(both);
    await put(kv, "kept");
    await eventually(async () =>
      await standby.run("SELECT count(*) FROM farebox_kv").catch(() => "0") === "1"
    );
    // From here on the standby gets nothing more.
    await standby.run("ALTER SYSTEM SET primary_conninfo = ''");
    await standby.run("SELECT pg_reload_conf()");
    await eventually(async () =>
      await primary.run("SELECT count(*) FROM pg_stat_replication") === "0"
    );
    const lost = await put(kv, "lost");
    await primary.stop("immediate");
    await standby.promote();
    await eventually(() => put(kv, "new").then((landed) => landed !== null, () => false), {
      withinMs: 30_000,
    });
    assert.ok((await kv.get(["kept"])).value);
    assert.equal((await kv.get(["lost"])).value, null);
    await put(kv, "lost", "anew");
    const stale = {
      ...emptyWrite(),
      checks: [{ key: ["lost"], version: lost }],
      sets: [set("lost", "stale")],
    };
    assert.equal(await kv.atomic(stale), null);
    kv.close();
  },
});
