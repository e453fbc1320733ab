import assert from "node:assert/strict";
import { SealReader } from "../../scripts/farebox/backup_file.ts";
import { decodeSeal, encodeSeal, isProven, Sealing } from "../../src/backup/seal.ts";
import { Secret } from "../../src/base/secret.ts";
import {
  assertVerified,
  backUp,
  filesIn,
  openShop,
  readShop,
  restore,
} from "../support/backups.ts";
import { runFarebox } from "../support/command.ts";
import {
  databaseOf,
  makeFolder,
  refusedStart,
  serviceEnv,
  startFarebox,
} from "../support/process.ts";
import { findCommand, testWith } from "../support/toolchains.ts";

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
  // So that only the WAL file has the last deposit.
  farebox.signal("SIGKILL");
  await farebox.ended;
  assert.ok((await Deno.stat(`${databaseOf(folder.path)}-wal`)).size > 0);
  return { folder, shop, backup, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

Deno.test("restore: replaces the database by the backup, and keeps the previous one", async () => {
  await using made = await backedUp();
  const { folder, shop, backup } = made;
  await Deno.writeTextFile(`${databaseOf(folder.path)}.restoring`, "left by one that was killed");
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

Deno.test("restore: if KV_PATH is a link, its target is locked, kept and replaced", async () => {
  await using made = await backedUp();
  const { folder, shop, backup } = made;
  await using other = await makeFolder();
  await Deno.symlink(databaseOf(folder.path), databaseOf(other.path));
  await Deno.symlink(folder.path, `${other.path}/folder`);
  {
    await using farebox = await start(folder.path);
    for (const path of [databaseOf(other.path), `${other.path}/folder/farebox.kv`]) {
      const args = ["restore", backup, "--yes", "--kv-path", path];
      const refused = await runFarebox(args, { folder: folder.path });
      assert.match(refused.complaint, /is in use by a running service\. Stop it first/);
      const env = { ...serviceEnv, KV_PATH: path };
      const second = await refusedStart({ folder: other.path, env });
      assert.match(second.complaint, /^KV_PATH \S+ is in use by another process. Stop it first$/m);
    }
    assert.equal((await readShop(farebox, shop)).users[0]?.balance, "3");
  }
  const ran = await restore(backup, other.path);
  assert.equal(ran.code, 0, ran.complaint);
  assert.deepEqual(filesIn(other.path), ["farebox.kv", "folder"]);
  assert.ok((await Deno.lstat(databaseOf(other.path))).isSymlink);
  await using farebox = await start(folder.path);
  assert.equal((await readShop(farebox, shop)).users[0]?.balance, "1");
});

Deno.test("restore: refuses an incomplete backup, and asks before it changes anything", async () => {
  await using made = await backedUp();
  const { folder, backup } = made;
  const good = await Deno.readFile(backup);
  const cut = `${folder.path}/cut.backup`;
  const changed = `${folder.path}/changed.backup`;
  await Deno.writeFile(cut, good.subarray(0, good.length / 2));
  await Deno.writeFile(changed, flipped(good, good.length >> 1));
  const before = await contentOf(folder.path);
  const cases: [string, string[], number, RegExp][] = [
    [
      cut,
      ["--yes"],
      1,
      /cut\.backup is not a backup, or not a complete one: its last line is missing/,
    ],
    [changed, ["--yes"], 1, /changed\.backup is damaged: it has \d+ bytes with the SHA-256/],
    [`${folder.path}/none`, ["--yes"], 1, /none cannot be read/],
    [backup, [], 2, /It is kept beside the new one\.\nThere is no terminal to confirm this/],
  ];
  for (const [file, args, code, told] of cases) {
    const ran = await restore(file, folder.path, args);
    assert.equal(ran.code, code, ran.complaint);
    assert.match(ran.complaint, told);
  }
  assert.deepEqual(await contentOf(folder.path), before);

  await using farebox = await start(folder.path);
  const ran = await restore(backup, folder.path);
  assert.equal(ran.code, 1);
  assert.match(ran.complaint, /farebox\.kv is in use by a running service\. Stop it first/);
  assert.equal((await readShop(farebox, made.shop)).users[0]?.balance, "3");
});

Deno.test("restore: the seal reveals anything cut off, changed or added", () => {
  const content = crypto.getRandomValues(new Uint8Array(1_000));
  for (const keys of [[], [secretOf("a")]]) {
    const sealing = new Sealing();
    sealing.add(content);
    const good = new Uint8Array([...content, ...encodeSeal(sealing.end(), keys)]);
    const read = (bytes: Uint8Array, pieceBytes: number) => {
      const reader = new SealReader();
      const known: number[] = [];
      for (let at = 0; at < bytes.length; at += pieceBytes) {
        known.push(...reader.add(bytes.subarray(at, at + pieceBytes)));
      }
      const { seal, sum } = reader.end("It");
      // A change within the proof itself leaves a file that is whole, and proven by nobody.
      assert.ok(keys.length === 0 || isProven(seal, sum, keys), "It is not proven");
      return known;
    };
    for (const pieceBytes of [1, 7, 99, 100, 101, 999, 1_100, 5_000]) {
      assert.deepEqual(read(good, pieceBytes), [...content]);
    }
    const faults = /It is (damaged|not a backup|not proven)/;
    for (let at = 0; at < good.length; at++) {
      assert.throws(() => read(flipped(good, at), 64), faults);
      assert.throws(() => read(good.subarray(0, at), 64), faults);
      assert.throws(() => read(new Uint8Array([...good].toSpliced(at, 1)), 64), faults);
    }
    assert.throws(() => read(new Uint8Array([...good, 10]), 64), /It is not a backup/);
  }
});

const secretOf = (letter: string) => new Secret(btoa(letter.repeat(32)));

Deno.test("restore: a proof is by one of the keys of SECRETS_KEY, for these bytes", () => {
  const sum = { bytes: 3, sha256: "ba".repeat(32) };
  const [older, newer, other] = [secretOf("a"), secretOf("b"), secretOf("c")];
  const seal = decodeSeal(encodeSeal(sum, [older])) ?? assert.fail();
  assert.ok(isProven(seal, sum, [newer, older]), "after a rotation");
  assert.ok(!isProven(seal, sum, [newer, other]));
  assert.ok(!isProven(seal, sum, []));
  assert.ok(!isProven(seal, { ...sum, sha256: `${"ba".repeat(31)}bb` }, [older]));
  assert.ok(!isProven(seal, { ...sum, bytes: 4 }, [older]));
  const unkeyed = decodeSeal(encodeSeal(sum)) ?? assert.fail();
  assert.deepEqual([unkeyed.proof, unkeyed.sha256], [null, sum.sha256]);
  assert.ok(!isProven(unkeyed, sum, [older]));
});

/** The same with one bit of that byte flipped. */
function flipped(bytes: Uint8Array, at: number): Uint8Array {
  return bytes.with(at, (bytes[at] ?? 0) ^ 1);
}

Deno.test("restore: a database that can no longer be opened is kept too, with its companion files", async () => {
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

// A user who may do everything except change owners: no other user can set this up.
const setpriv = Deno.uid() === 0 ? await findCommand("setpriv") : { missing: "not root" };

testWith(
  setpriv,
  "restore: by someone who is not the owner is refused, and says who may",
  async () => {
    await using made = await backedUp();
    const { folder, backup } = made;
    const path = databaseOf(folder.path);
    await Deno.chown(path, 1234, 1234);
    const before = await contentOf(folder.path);
    const by = ["setpriv", "--bounding-set=-chown"];
    const args = ["restore", backup, "--yes", "--kv-path", path];
    const ran = await runFarebox(args, { folder: folder.path, by });
    assert.equal(ran.code, 1, ran.complaint);
    assert.match(ran.complaint, /Run it as the owner of \S+farebox\.kv, or as root\. Nothing was/);
    assert.doesNotMatch(ran.complaint, /^ +at /m);
    assert.deepEqual(await contentOf(folder.path), before);
  },
);

Deno.test("restore: a database on a server is refused", async () => {
  await using folder = await makeFolder();
  const env = { KV_PATH: "https://kv.example", ADMIN_KEY: "" };
  const ran = await runFarebox(["restore", "x"], { folder: folder.path, env });
  assert.equal(ran.code, 1);
  assert.match(ran.complaint, /is not a database file/);
});

/** Every file of a folder, by name. */
async function contentOf(folder: string): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  for (const name of filesIn(folder)) {
    files.set(name, (await Deno.readFile(`${folder}/${name}`)).toBase64());
  }
  return files;
}
