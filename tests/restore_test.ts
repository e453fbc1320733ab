import assert from "node:assert/strict";
import { assertVerified, backUp, filesIn, openShop, readShop, restore } from "./support/backups.ts";
import { runFarebox } from "./support/command.ts";
import { databaseOf, makeFolder, serviceEnv, startFarebox } from "./support/process.ts";

const start = (folder: string) => startFarebox({ folder, env: serviceEnv });

/** A stopped service with a backup in which ada has 1, and a database in which she has 3. */
async function backedUp() {
  const folder = await makeFolder();
  await using farebox = await start(folder.path);
  const shop = await openShop(farebox);
  const deposit = (amount: string) =>
    farebox.json("/v1/user/balance/deposit", { key: shop.key, body: { user: "ada", amount } });
  await deposit("1");
  const backup = await backUp(farebox, folder.path);
  await deposit("2");
  // So that the last deposit is in the WAL file alone.
  farebox.signal("SIGKILL");
  await farebox.ended;
  assert.ok((await Deno.stat(`${databaseOf(folder.path)}-wal`)).size > 0);
  return { folder, shop, backup, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

Deno.test("restore: puts the backup in the database's place, and keeps what was there, whole", async () => {
  await using made = await backedUp();
  const { folder, shop, backup } = made;
  const ran = await restore(backup, folder.path, ["--yes", "--json"]);
  assert.equal(ran.code, 0, ran.complaint);
  const { kept } = JSON.parse(ran.printed);
  const names = filesIn(folder.path);
  assert.equal(names.length, 4, `${names}`);
  assert.deepEqual(names.slice(0, 2), ["farebox.backup", "farebox.kv"]);
  assert.match(names[2] ?? "", /^farebox\.kv\.before-restore-\d{4}-\d\d-\d\dT[\dZ-]+$/);
  assert.equal(names[3], "farebox.kv.lock");
  const balanceIn = async () => {
    await using farebox = await start(folder.path);
    await assertVerified(farebox);
    const [ada] = (await readShop(farebox, shop)).users;
    farebox.signal("SIGTERM");
    await farebox.ended;
    return ada?.balance;
  };
  assert.equal(await balanceIn(), "1");
  await Deno.rename(kept, databaseOf(folder.path));
  assert.equal(await balanceIn(), "3", "the one before it, with what was in its WAL file");
});

Deno.test("restore: refuses while the service runs, and touches nothing", async () => {
  await using made = await backedUp();
  const { folder, shop, backup } = made;
  await using farebox = await start(folder.path);
  const before = filesIn(folder.path);
  const ran = await restore(backup, folder.path);
  assert.equal(ran.code, 1);
  assert.match(ran.complaint, /farebox\.kv is in use by a running service: stop it first/);
  assert.deepEqual(filesIn(folder.path), before);
  assert.equal((await readShop(farebox, shop)).users[0]?.balance, "3");
});

Deno.test("restore: a file that is cut off, changed or something else is refused, and nothing touched", async () => {
  await using made = await backedUp();
  const { folder, backup } = made;
  const good = await Deno.readFile(backup);
  const flipped = (at: number) => {
    const bytes = good.slice();
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    return bytes;
  };
  const database = await contentOf(folder.path);
  const cases: Record<string, [Uint8Array, RegExp]> = {
    "cut off": [good.subarray(0, -1), /its last line is missing/],
    "half": [good.subarray(0, good.length / 2), /its last line is missing/],
    "empty": [new Uint8Array(), /its last line is missing/],
    "a page missing": [
      new Uint8Array([...good.subarray(0, 4096), ...good.subarray(8192)]),
      /is damaged: it has \d+ bytes/,
    ],
    "a bit of the header": [flipped(30), /is damaged/],
    "a bit in the middle": [flipped(good.length >> 1), /is damaged/],
    "a bit of the seal's hash": [flipped(good.length - 2), /is damaged|last line is missing/],
    "more behind it": [new Uint8Array([...good, 10]), /its last line is missing/],
    "no backup": [new TextEncoder().encode("user,amount\nada,1\n"), /is no backup/],
  };
  const path = `${folder.path}/other`;
  for (const [what, [bytes, told]] of Object.entries(cases)) {
    await Deno.writeFile(path, bytes);
    const ran = await restore(path, folder.path);
    assert.equal(ran.code, 1, what);
    assert.match(ran.complaint, told, what);
  }
  await Deno.remove(path);
  assert.match((await restore(path, folder.path)).complaint, /other cannot be read/);
  assert.deepEqual(await contentOf(folder.path), database);
});

Deno.test("restore: asks before it replaces a database, and does nothing where nobody can say yes", async () => {
  await using made = await backedUp();
  const { folder, backup } = made;
  const before = await contentOf(folder.path);
  const ran = await restore(backup, folder.path, []);
  assert.equal(ran.code, 2);
  assert.match(ran.complaint, /which is kept\?\nNobody can be asked here: say --yes/);
  assert.deepEqual(await contentOf(folder.path), before);
});

Deno.test("restore: a database that cannot be opened any more is kept too, with its companions", async () => {
  await using made = await backedUp();
  const { folder, shop, backup } = made;
  const path = databaseOf(folder.path);
  await Deno.writeTextFile(path, "no database");
  await Deno.writeTextFile(`${path}-wal`, "no WAL file");
  const ran = await restore(backup, folder.path, ["--yes", "--json"]);
  assert.equal(ran.code, 0, ran.complaint);
  const { kept } = JSON.parse(ran.printed);
  assert.equal(await Deno.readTextFile(kept), "no database");
  assert.equal(await Deno.readTextFile(`${kept}-wal`), "no WAL file");
  await using farebox = await start(folder.path);
  await assertVerified(farebox);
  assert.equal((await readShop(farebox, shop)).users[0]?.balance, "1");
});

Deno.test("restore: a database on a server is refused", async () => {
  await using folder = await makeFolder();
  const env = { KV_PATH: "https://kv.example", ADMIN_KEY: "" };
  const ran = await runFarebox(["restore", "x"], { folder: folder.path, env });
  assert.equal(ran.code, 1);
  assert.match(ran.complaint, /is no database file/);
});

/** Every file of a folder, by name. */
async function contentOf(folder: string): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  for (const name of filesIn(folder)) {
    files.set(name, (await Deno.readFile(`${folder}/${name}`)).toBase64());
  }
  return files;
}
