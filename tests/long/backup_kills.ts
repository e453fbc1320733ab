// Takes minutes, so it is no part of `deno task test`:
//   deno test -A tests/long/backup_kills.ts
import assert from "node:assert/strict";
import { checkDatabase } from "../../scripts/farebox/backup_file.ts";
import {
  assertOneMoment,
  assertVerified,
  backUp,
  fillUp,
  openShop,
  readShop,
  restore,
  startLoad,
} from "../support/backups.ts";
import {
  databaseOf,
  eventually,
  type Farebox,
  makeFolder,
  serviceEnv,
  startFarebox,
} from "../support/process.ts";
import { sleep, startSlowUpstream } from "../support/traffic.ts";
import { mulberry32 } from "../support/random.ts";
import { adminKey } from "../support/world.ts";

const rounds = 40;
const seed = 20261121;
const loadCount = 200;
const killWithinMs = 1_500;

Deno.test("backup: forty kills during backups under load; every backup is of one moment", async () => {
  await using folder = await makeFolder();
  await using upstream = startSlowUpstream(() => 5);
  const env = { ...serviceEnv, UPSTREAM_URL: upstream.url };
  const random = mulberry32(seed);
  await fillUp(folder.path, 40);
  let copied = 0;
  for (let round = 0; round < rounds; round++) {
    const farebox = await startFarebox({ folder: folder.path, env });
    const shop = await openShop(farebox);
    const load = startLoad(farebox, shop, 16);
    await eventually(() => load.count > loadCount, { withinMs: 60_000 });
    const toldBefore = load.chains.flat();
    const backup = await backUp(farebox, folder.path, `${round}.backup`);
    const dying = dieInTheMiddle(farebox, random() * killWithinMs);
    copied += Number(await dying);
    await load.stop();
    await farebox[Symbol.asyncDispose]();
    checkDatabase(databaseOf(folder.path), "the killed one's database");

    await using after = await startFarebox({ folder: folder.path, env });
    const whole = await readShop(after, shop);
    const ids = new Set(whole.entries.map(({ id }) => id));
    assert.deepEqual(load.chains.flat().filter((id) => !ids.has(id)), [], "nothing is lost");
    if (round % 5 === 0) await assertVerified(after);

    await using elsewhere = await makeFolder();
    assert.equal((await restore(backup, elsewhere.path)).code, 0);
    await using restored = await startFarebox({ folder: elsewhere.path, env });
    await assertVerified(restored);
    assertOneMoment(await readShop(restored, shop), { chains: load.chains, toldBefore, whole });
    await Deno.remove(backup);
    console.log({ round, copied, entries: whole.entries.length });
  }
  console.log({ seed, rounds, copied });
  assert.ok(copied > 0 && copied < rounds, "some were killed while copying, some while sending");
});

/**
 * Kills the service some time after a backup was requested; true when the copy was complete by
 * then.
 */
async function dieInTheMiddle(farebox: Farebox, afterMs: number): Promise<boolean> {
  const asked = farebox.call("/v1/admin/backup", { key: adminKey }).then(async (response) => {
    await response.body?.getReader().read();
    return true;
  }, () => false);
  await sleep(afterMs);
  farebox.signal("SIGKILL");
  await farebox.ended;
  return await asked;
}
