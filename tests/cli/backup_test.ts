import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import {
  assertOneMoment,
  assertVerified,
  backUp,
  filesIn,
  fillUp,
  openShop,
  readShop,
  restore,
  startLoad,
} from "../support/backups.ts";
import { startCuttingProxy } from "../support/cutting_proxy.ts";
import { runFarebox } from "../support/command.ts";
import {
  databaseOf,
  eventually,
  type Farebox,
  makeFolder,
  serviceEnv,
  startFarebox,
} from "../support/process.ts";
import { startSlowUpstream } from "../support/traffic.ts";
import { adminKey, createWorld, type World } from "../support/world.ts";

const start = (folder: string, env: Record<string, string> = {}) =>
  startFarebox({ folder, env: { ...serviceEnv, ...env } });

async function deposit(farebox: Farebox, key: string, amount: string): Promise<void> {
  await farebox.json("/v1/user/balance/deposit", { key, body: { user: "ada", amount } });
}

Deno.test("backup: taken under load, it is the ledger at one moment, and verifies", async () => {
  await using folder = await makeFolder();
  await using upstream = startSlowUpstream(() => 5);
  const env = { UPSTREAM_URL: upstream.url };
  await using farebox = await start(folder.path, env);
  const shop = await openShop(farebox);
  const load = startLoad(farebox, shop);
  await eventually(() => load.count > 100, { withinMs: 20_000 });
  const toldBefore = load.chains.flat();
  const backup = await backUp(farebox, folder.path);
  const toldUntil = load.count;
  await eventually(() => load.count > toldUntil + 100, { withinMs: 20_000 });
  await load.stop();
  const whole = await readShop(farebox, shop);

  await using elsewhere = await makeFolder();
  const restored = await restore(backup, elsewhere.path, []);
  assert.equal(restored.code, 0, restored.complaint);
  assert.match(
    restored.printed,
    /Next: start the service, then verify it with 'deno task farebox verify'/,
  );
  await using again = await start(elsewhere.path, env);
  await assertVerified(again);
  const restoredBooks = await readShop(again, shop);
  assert.ok(restoredBooks.entries.length < whole.entries.length, "the load went on after the copy");
  assertOneMoment(restoredBooks, { chains: load.chains, toldBefore, whole });
  // And it accepts deposits again.
  await deposit(again, shop.key, "1");
});

Deno.test("backup: it contains nothing of a user who was erased before", async () => {
  await using folder = await makeFolder();
  await using farebox = await start(folder.path);
  const { projectId, key } = await openShop(farebox);
  const user = "ada.lovelace@example.com";
  for (let n = 0; n < 20; n++) {
    const body = { user, amount: "1", metadata: { order: `order-${n}` } };
    await farebox.json("/v1/user/balance/deposit", { key, body });
  }
  const path = `/v1/admin/projects/${projectId}/users/${user}/forget`;
  await eventually(async () => {
    const forgetting = { key: adminKey, body: { forfeit: true } };
    return (await farebox.json(path, forgetting)).status === "done";
  });
  const backup = await Deno.readFile(await backUp(farebox, folder.path));
  assert.ok(!new TextDecoder("latin1").decode(backup).includes("ada.lovelace"));
});

Deno.test("backup: SQLite's locks on the database stay as they were, so it is safe beside Deno KV", async () => {
  await using folder = await makeFolder();
  await using farebox = await start(folder.path);
  const { key } = await openShop(farebox);
  const { ino } = await Deno.stat(databaseOf(folder.path));
  const locks = async () => {
    const lines = (await Deno.readTextFile("/proc/locks")).split("\n");
    return lines.filter((line) => line.includes(` ${farebox.pid} `) && line.includes(`:${ino} `))
      .map((line) => line.replace(/^\d+: /, ""));
  };
  const before = await locks();
  assert.equal(before.length, 1, "Deno KV holds a lock while it has the file open");
  await backUp(farebox, folder.path);
  assert.deepEqual(await locks(), before);
  await deposit(farebox, key, "1");
});

Deno.test("backup: a service killed during a copy loses nothing, and leaves nothing behind", async () => {
  await using folder = await makeFolder();
  await fillUp(folder.path, 30);
  const copy = `${databaseOf(folder.path)}.copying`;
  const shop = await (async () => {
    await using farebox = await start(folder.path);
    const shop = await openShop(farebox);
    await deposit(farebox, shop.key, "5");
    const asked = assert.rejects(farebox.call("/v1/admin/backup", { key: adminKey }));
    await eventually(() => existsSync(copy));
    farebox.signal("SIGKILL");
    await asked;
    assert.ok(existsSync(copy), "it was killed in the middle");
    return shop;
  })();
  await using farebox = await start(folder.path);
  assert.ok(!existsSync(copy));
  await assertVerified(farebox);
  const { users } = await readShop(farebox, shop);
  assert.deepEqual(users.map(({ balance }) => balance), ["5"]);
  await backUp(farebox, folder.path);
});

Deno.test("backup: a reader that disconnects frees the disk; only one backup runs at a time", async () => {
  await using folder = await makeFolder();
  await fillUp(folder.path, 20);
  await using farebox = await start(folder.path);
  const response = await farebox.call("/v1/admin/backup", { key: adminKey });
  const reader = response.body?.getReader() ?? assert.fail();
  await reader.read();
  assert.ok(openCopies(farebox) > 0);
  const second = await farebox.call("/v1/admin/backup", { key: adminKey });
  assert.equal(second.status, 429);
  assert.equal((await second.json()).error.code, "backup_running");
  await reader.cancel();
  await eventually(() => openCopies(farebox) === 0, { what: "the copy's end" });
  assert.deepEqual(filesIn(folder.path), [
    "farebox.kv",
    "farebox.kv-shm",
    "farebox.kv-wal",
    "farebox.kv.lock",
  ]);
  await backUp(farebox, folder.path);
  assert.equal(openCopies(farebox), 0);
});

/** How many copies the service still has open, by name or unlinked. */
function openCopies({ pid }: Farebox): number {
  const links = [...Deno.readDirSync(`/proc/${pid}/fd`)].flatMap(({ name }) => {
    try {
      return [Deno.readLinkSync(`/proc/${pid}/fd/${name}`)];
    } catch {
      return [];
    }
  });
  return links.filter((link) => link.includes(".copying")).length;
}

Deno.test("backup: a broken connection leaves no file, and is reported", async () => {
  await using folder = await makeFolder();
  await fillUp(folder.path, 5);
  await using farebox = await start(folder.path);
  await using proxy = startCuttingProxy(farebox.url, { afterBytes: 1_000_000, cutsMax: 1 });
  const out = `${folder.path}/a.backup`;
  const args = ["backup", "--out", out, "--json"];
  const cut = await runFarebox(args, { folder: folder.path, url: proxy.url });
  assert.equal(cut.code, 3, cut.complaint);
  assert.match(cut.complaint, /closed after \d+\.\d MB: .* Nothing was kept; try again\./);
  assert.ok(!filesIn(folder.path).some((name) => name.includes("backup")));
  const whole = await runFarebox(args, { folder: folder.path, url: proxy.url });
  assert.equal(whole.code, 0, whole.complaint);
  const { file, bytes, sha256 } = JSON.parse(whole.printed);
  assert.equal(file, out);
  assert.equal(bytes, (await Deno.stat(out)).size);
  assert.match(sha256, /^[0-9a-f]{64}$/);
  assert.equal(((await Deno.stat(out)).mode ?? 0) & 0o077, 0, "nobody else may read it");
});

const ask = (world: World) => world.call("/v1/admin/backup", { key: adminKey });

Deno.test("backup: a reader that stops for five minutes is disconnected, and the disk space is freed", async () => {
  let isFree = false;
  const stream = () =>
    new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new Uint8Array(10)),
      cancel: () => void (isFree = true),
    }, { highWaterMark: 0 });
  const takeSnapshot = async () => ({ bytes: 1_000, stream: stream() });
  using world = await createWorld({ takeSnapshot });
  const { clock, logged } = world;
  const reader = (await ask(world)).body?.getReader() ?? assert.fail();
  for (let minute = 0; minute < 8; minute += 4) {
    await reader.read();
    await clock.advance(4 * 60_000);
  }
  assert.equal(isFree, false);
  await clock.advance(60_000);
  assert.equal(isFree, true);
  await assert.rejects(reader.read(), /the reader stopped for 5 minutes/);
  assert.ok(logged.some(({ event, sent }) => event === "backup_cut" && sent === 20));
  assert.equal((await ask(world)).status, 200);
});

Deno.test("backup: a copy that fails is a clear error, and the next one may work", async () => {
  let failing = true;
  const takeSnapshot = async () => {
    if (failing) throw new Error("database or disk is full");
    return {
      bytes: 3,
      stream: ReadableStream.from([new TextEncoder().encode("abc")]),
    };
  };
  using world = await createWorld({ takeSnapshot });
  const refused = await ask(world);
  assert.equal(refused.status, 503);
  assert.match((await refused.json()).error.message, /needs the same disk space again/);
  failing = false;
  const whole = await ask(world);
  assert.equal(whole.headers.get("content-length"), "103");
  assert.match(
    await whole.text(),
    /^abc\nfarebox-backup 2 0000000000000003 ba7816bf8f01cfea[0-9a-f]{48}\n$/,
  );
  using unkeyed = await createWorld({ takeSnapshot, env: { SECRETS_KEY: "" } });
  assert.match(
    await (await ask(unkeyed)).text(),
    /^abc\nfarebox-backup 1 0000000000000003 ba7816bf8f01cfea[0-9a-f]{48}\n$/,
    "without SECRETS_KEY it contains no proof",
  );
});

Deno.test("backup: a database in memory or on a server is refused, with the alternative", async () => {
  using world = await createWorld();
  const { status, body } = await world.json("/v1/admin/backup", { key: adminKey });
  assert.deepEqual([status, body.error.code], [400, "backup_not_here"]);
  for (
    const [kvPath, told] of [
      [":memory:", /Set KV_PATH to a file/],
      ["https://kv.example", /denokv .*, for Deno Deploy its own backups\.$/],
    ] as const
  ) {
    using other = await createWorld({ env: { KV_PATH: kvPath } });
    const { body } = await other.json("/v1/admin/backup", { key: adminKey });
    assert.match(body.error.message, told);
  }
  assert.equal((await world.json("/v1/admin/backup")).status, 401);
});

Deno.test("backup: a HEAD request does not block the next backup", async () => {
  await using folder = await makeFolder();
  await using farebox = await startFarebox({ folder: folder.path, env: serviceEnv });
  const headers = { authorization: `Bearer ${serviceEnv.ADMIN_KEY}` };
  const ask = (method: string) => fetch(`${farebox.url}/v1/admin/backup`, { method, headers });
  for (const method of ["HEAD", "HEAD", "GET"]) {
    const response = await ask(method);
    const { byteLength } = await response.arrayBuffer();
    assert.deepEqual([response.status, byteLength > 0], [200, method === "GET"]);
  }
});
