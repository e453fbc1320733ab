import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { SealReader } from "../../scripts/farebox/backup_file.ts";
import { foreignSchema } from "../../scripts/farebox/kv_schema.ts";
import { encodeSeal, Sealing } from "../../src/backup/seal.ts";
import { Secret } from "../../src/base/secret.ts";
import { backUp, filesIn, openShop, readShop } from "../support/backups.ts";
import { runFarebox } from "../support/command.ts";
import { databaseOf, makeFolder, serviceEnv, startFarebox } from "../support/process.ts";

const key = serviceEnv.SECRETS_KEY;
const newerKey = btoa("n".repeat(32));

/** A stopped service, and its backup. */
async function backedUp(env: Record<string, string> = {}) {
  const folder = await makeFolder();
  await using farebox = await startFarebox({ folder: folder.path, env: { ...serviceEnv, ...env } });
  const shop = await openShop(farebox);
  const body = { user: "ada", amount: "1" };
  await farebox.json("/v1/user/balance/deposit", { key: shop.key, body });
  const backup = await backUp(farebox, folder.path);
  return { folder, shop, backup, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

/** Changes the database in a backup, and seals it anew, with a key where one is given. */
async function changed(backup: string, sql: string, secret: string | null = null): Promise<string> {
  const reader = new SealReader();
  const content = reader.add(await Deno.readFile(backup));
  const path = `${backup}.changed`;
  await Deno.writeFile(path, content);
  {
    using database = new DatabaseSync(path);
    database.exec(sql);
  }
  const bytes = await Deno.readFile(path);
  const sealing = new Sealing();
  sealing.add(bytes);
  const keys = secret === null ? [] : [new Secret(secret)];
  await Deno.writeFile(path, new Uint8Array([...bytes, ...encodeSeal(sealing.end(), keys)]));
  return path;
}

const restoreWith = (file: string, folder: string, secretsKey: string) =>
  runFarebox(["restore", file, "--yes", "--json"], {
    folder,
    env: { KV_PATH: databaseOf(folder), ADMIN_KEY: "", SECRETS_KEY: secretsKey },
  });

Deno.test("restore: knows everything that Deno KV creates, and nothing else", async () => {
  await using folder = await makeFolder();
  const path = databaseOf(folder.path);
  const kv = await Deno.openKv(path);
  await kv.set(["a"], new Uint8Array(1));
  kv.close();
  using database = new DatabaseSync(path);
  assert.deepEqual(foreignSchema(database), []);
  const added: [sql: string, undo: string, says: RegExp][] = [
    [
      "CREATE TRIGGER t AFTER INSERT ON kv BEGIN DELETE FROM kv; END",
      "DROP TRIGGER t",
      /trigger t/,
    ],
    ["CREATE VIEW v AS SELECT k FROM kv", "DROP VIEW v", /view v/],
    ["CREATE TABLE other (k)", "DROP TABLE other", /table other/],
    ["CREATE INDEX i ON kv (version)", "DROP INDEX i", /index i/],
    ["CREATE VIRTUAL TABLE f USING fts5(text)", "DROP TABLE f", /table f\b/],
    [
      "ALTER TABLE kv RENAME TO kv2; CREATE VIEW kv AS SELECT * FROM kv2",
      "DROP VIEW kv; ALTER TABLE kv2 RENAME TO kv",
      /table kv2.*view kv.*no table kv|view kv.*no table kv/,
    ],
    [
      "ALTER TABLE queue ADD COLUMN more",
      "ALTER TABLE queue DROP COLUMN more",
      /another table queue/,
    ],
    [
      "DROP INDEX kv_expiration_ms_idx; CREATE INDEX kv_expiration_ms_idx ON kv (abs(version))",
      "",
      /another index/,
    ],
  ];
  for (const [sql, undo, says] of added) {
    database.exec(sql);
    assert.match(foreignSchema(database).join(", "), says, sql);
    database.exec(undo);
  }
});

Deno.test("restore: a trigger, a view or a foreign table is refused, however it is sealed", async () => {
  await using made = await backedUp();
  const { folder, backup } = made;
  const before = filesIn(folder.path);
  const sqls = [
    "CREATE TRIGGER gift AFTER UPDATE ON data_version BEGIN DELETE FROM queue; END",
    "CREATE VIEW extra AS SELECT k FROM kv",
    "CREATE TABLE extra (k)",
    "CREATE VIRTUAL TABLE extra USING fts5(text)",
  ];
  for (const sql of sqls) {
    for (const [secret, given] of [[null, ""], [null, key], [key, key]] as const) {
      const file = await changed(backup, sql, secret);
      const ran = await restoreWith(file, folder.path, given);
      assert.equal(ran.code, 1, sql);
      assert.match(ran.complaint, /not a sound Farebox database: it has the (trigger|view|table)/);
      await Deno.remove(file);
      assert.deepEqual(filesIn(folder.path), before, "nothing was changed");
    }
  }
});

Deno.test("restore: a backup that was changed and sealed with another key is refused", async () => {
  await using made = await backedUp();
  const { folder, shop, backup } = made;
  const file = await changed(backup, "DELETE FROM queue", newerKey);
  const refused = await restoreWith(file, folder.path, key);
  assert.equal(refused.code, 1);
  assert.match(
    refused.complaint,
    /was changed after it was made, or was made with another SECRETS_KEY/,
  );
  const unproven = await restoreWith(file, folder.path, "");
  assert.equal(unproven.code, 0, unproven.complaint);
  assert.match(
    unproven.complaint,
    /SECRETS_KEY is not set here: it is not damaged, but that nobody/,
  );
  assert.equal(JSON.parse(unproven.printed).proven, false);

  for (const keys of [key, `${newerKey},${key}`]) {
    const proven = await restoreWith(backup, folder.path, keys);
    assert.equal(proven.code, 0, proven.complaint);
    assert.match(proven.complaint, /is complete, and as the service made it\./);
    assert.equal(JSON.parse(proven.printed).proven, true);
  }
  const wrong = await restoreWith(backup, folder.path, newerKey);
  assert.equal(wrong.code, 1, "the key of its time is missing");
  const bad = await restoreWith(backup, folder.path, "no key");
  assert.match(bad.complaint, /SECRETS_KEY must be 32 bytes in base64/);

  await using farebox = await startFarebox({ folder: folder.path, env: serviceEnv });
  assert.equal((await readShop(farebox, shop)).users[0]?.balance, "1");
  const { actions } = await farebox.json("/v1/admin/audit?action=backup.restored", {
    key: serviceEnv.ADMIN_KEY,
  });
  assert.deepEqual([actions.length, actions[0].via, actions[0].detail], [1, "command", {
    file: "farebox.backup",
  }]);
});

Deno.test("restore: a backup without a proof is restored, and it is said what is not proven", async () => {
  await using made = await backedUp({ SECRETS_KEY: "" });
  const { folder, backup } = made;
  for (const given of ["", key]) {
    const ran = await restoreWith(backup, folder.path, given);
    assert.equal(ran.code, 0, ran.complaint);
    assert.match(ran.complaint, /made by version 0\.9\.0, or without SECRETS_KEY.*not proven/);
  }
});
