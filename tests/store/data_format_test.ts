import assert from "node:assert/strict";
import { gunzipSync } from "node:zlib";
import { fromBytes, toBytes } from "../../src/base/json.ts";
import { claimDataFormat, dataFormat } from "../../src/store/data_format.ts";
import { dataFormatKey } from "../../src/store/keys.ts";
import { openPostgres } from "../../src/platform/postgres.ts";
import { emptyWrite, type Kv } from "../../src/store/kv.ts";
import { findPostgres, startPostgres } from "../support/postgres.ts";
import {
  databaseOf,
  makeFolder,
  refusedStart,
  serviceEnv,
  startFarebox,
} from "../support/process.ts";
import { MemoryStore } from "../simulation/memory_store.ts";
import { testWith } from "../support/toolchains.ts";
import { env } from "../support/wallets.ts";

const newer = toBytes({ format: dataFormat + 1, by: "7.1.0" });
const complaint = /KV_PATH was upgraded by Farebox 7\.1\.0,.* restore the backup/;

/** Marks a store as a later version would. */
async function upgrade(kv: Kv): Promise<void> {
  await kv.atomic({ ...emptyWrite(), sets: [{ key: dataFormatKey, value: newer }] });
}

Deno.test("data format: it is written once, raised by a newer version, and refused by an older one", async () => {
  const { kv } = new MemoryStore();
  const stored = async () =>
    fromBytes<{ format: number }>((await kv.get(dataFormatKey)).value ?? toBytes({}));
  await claimDataFormat(kv);
  assert.equal((await stored()).format, dataFormat);
  const { version } = await kv.get(dataFormatKey);
  await claimDataFormat(kv);
  assert.equal((await kv.get(dataFormatKey)).version, version, "nothing is written again");
  const older = toBytes({ format: dataFormat - 1, by: "0.0.1" });
  await kv.atomic({ ...emptyWrite(), sets: [{ key: dataFormatKey, value: older }] });
  await claimDataFormat(kv);
  assert.equal((await stored()).format, dataFormat);
  await upgrade(kv);
  await assert.rejects(claimDataFormat(kv), complaint);
  assert.equal((await stored()).format, dataFormat + 1, "it is left as it is");
});

Deno.test("data format: processes that start together mark it together", async () => {
  const { kv } = new MemoryStore();
  await Promise.all(Array.from({ length: 8 }, () => claimDataFormat(kv)));
  assert.notEqual((await kv.get(dataFormatKey)).value, null);
});

Deno.test("data format: a file of 0.9.0 is read on; an upgraded one is refused, and not changed", async () => {
  await using folder = await makeFolder();
  const path = databaseOf(folder.path);
  const fixture = new URL("../fixtures/database/0.9.0.kv.gz", import.meta.url);
  await Deno.writeFile(path, gunzipSync(await Deno.readFile(fixture)));
  const options = { folder: folder.path, env: { ...serviceEnv, ...env } };
  {
    await using farebox = await startFarebox(options);
    assert.equal((await farebox.call("/readyz")).status, 200);
    farebox.signal("SIGTERM");
    assert.equal((await farebox.ended).code, 0);
  }
  {
    using kv = await Deno.openKv(path);
    await kv.set([...dataFormatKey], newer);
  }
  const refused = await refusedStart(options);
  assert.equal(refused.code, 1);
  assert.match(refused.complaint, complaint);
  using kv = await Deno.openKv(path);
  assert.deepEqual((await kv.get<Uint8Array>([...dataFormatKey])).value, newer);
});

testWith(
  findPostgres() === null ? { missing: "there is no PostgreSQL" } : { path: "" },
  "data format: an upgraded database on PostgreSQL is refused",
  async () => {
    await using server = await startPostgres();
    await using folder = await makeFolder();
    const KV_PATH = server.url();
    const options = { folder: folder.path, env: { ...serviceEnv, KV_PATH } };
    {
      await using farebox = await startFarebox(options);
      farebox.signal("SIGTERM");
      assert.equal((await farebox.ended).code, 0);
    }
    const waits = { pause: () => Promise.resolve(), elapsed: () => performance.now() };
    const { kv } = await openPostgres(KV_PATH, { password: null, waits });
    await upgrade(kv);
    await kv.close();
    assert.match((await refusedStart(options)).complaint, complaint);
  },
);
