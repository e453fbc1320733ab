import assert from "node:assert/strict";
import { copyRows } from "../../scripts/farebox/copy_rows.ts";
import { findProjectRows } from "../../scripts/farebox/project_rows.ts";
import { fromBytes, type Json, toBytes } from "../../src/base/json.ts";
import { projectKey, sealedWithKey } from "../../src/store/keys.ts";
import { emptyWrite, type Kv } from "../../src/store/kv.ts";
import { MemoryStore } from "../simulation/memory_store.ts";
import { storedRows } from "../support/books.ts";
import { chat } from "../support/chat.ts";
import { makeBusy } from "../support/verify.ts";
import { sharedWorld } from "../support/wallets.ts";
import { operate } from "../support/webhooks.ts";
import { runFarebox } from "../support/command.ts";
import { databaseOf, makeFolder, serviceEnv, startFarebox } from "../support/process.ts";
import { adminKey, createWorld } from "../support/world.ts";

Deno.test("copy: one project moves to another store with its keys and users", async () => {
  await using folder = await makeFolder();
  const stores = { first: databaseOf(folder.path), second: `${folder.path}/second.kv` };
  const start = (kvPath: string) =>
    startFarebox({ folder: folder.path, env: { ...serviceEnv, KV_PATH: kvPath } });
  const made: { id: string; key: string }[] = [];
  for (const [name, kvPath] of Object.entries(stores)) {
    await using service = await start(kvPath);
    const { project, apiKey } = await service.json("/v1/admin/projects", {
      key: adminKey,
      body: { name, pricing: { models: { m: { input: "1", output: "2" } } } },
    });
    const deposit = { user: "ada", amount: "3" };
    await service.json("/v1/user/balance/deposit", {
      key: apiKey,
      body: deposit,
      headers: { "idempotency-key": "order-1" },
    });
    made.push({ id: project.id, key: apiKey });
    service.signal("SIGTERM");
    await service.ended;
  }
  const [one, two] = made;
  assert.ok(one && two);
  const copy = (project: string) =>
    runFarebox(
      ["copy", "--from", stores.first, "--to", stores.second, "--project", project],
      { folder: folder.path },
    );
  const done = await copy(one.id);
  assert.equal(done.code, 0, done.complaint);
  assert.match((await copy(one.id)).complaint, /has the project pw_\w+ already/);
  assert.match((await copy("pw_NONE")).complaint, /The source has no project pw_NONE/);
  await using service = await start(stores.second);
  for (const { id, key } of made) {
    const { balance } = await service.json("/v1/user/balance?user=ada", { key });
    assert.equal(balance, "3", id);
    const again = await service.call("/v1/user/balance/deposit", {
      key,
      body: { user: "ada", amount: "3" },
      headers: { "idempotency-key": "order-1" },
    });
    assert.equal(again.headers.get("idempotent-replayed"), "true");
    await again.body?.cancel();
  }
  const { actions } = await service.json(
    `/v1/admin/projects/${one.id}/audit?action=data.copied`,
    { key: adminKey },
  );
  assert.equal(actions.length, 1);
  const verified = await runFarebox(["verify"], {
    folder: folder.path,
    url: service.url,
    env: { ADMIN_KEY: adminKey },
  });
  assert.equal(verified.code, 0, verified.printed);
});

Deno.test("copy: each row belongs to one project, or to the instance", async () => {
  using world = await createWorld({ env: { WEBHOOK_RETENTION_DAYS: "1" } });
  await makeBusy(world);
  const other = await world.makeProject({ name: "Other" });
  await world.json("/v1/user/balance/deposit", {
    key: other.apiKey,
    body: { user: "ada", amount: "3" },
  });
  // A link, and a call that is refused.
  await chat(world, { user: "poor" });
  await operate(world, "/audit", { method: "GET" });
  await world.app.flush();
  const rows = await storedRows(world);
  const owners = await Promise.all(
    [world.projectId, other.projectId].map((id) => findProjectRows(world.deps.kv, id)),
  );
  const kinds = new Set<string>();
  for (const row of rows) {
    const of = owners.filter(({ owns }) => owns({ ...row, version: null }));
    assert.ok(of.length <= 1, `${row.key.join(" ")} belongs to both`);
    if (of.length === 0) kinds.add(String(row.key[0]));
  }
  const ofInstance = [
    ...[
      "audit",
      "commit",
      "expiry_indexed",
      "lease",
      "process",
      "reasoning",
      "sealed_with",
      "data_format",
    ],
  ];
  assert.deepEqual([...kinds].filter((kind) => !ofInstance.includes(kind)), []);
  const owned = new Set(
    rows.filter((row) => owners[0]?.owns({ ...row, version: null }))
      .map(({ key }) => key[0]),
  );
  for (const kind of ["account", "due", "ready", "key_hash", "link", "log", "requests", "sum"]) {
    assert.ok(owned.has(kind), kind);
  }
});

Deno.test("copy: the target's mark of keys names those of the project's secrets, too", async () => {
  const id = "pw_01K9Z0C8Q4R7T2V5X8Z1B3D5F7";
  const marked = async (mark: Json | null, projectId: string | null): Promise<Kv> => {
    const { kv } = new MemoryStore();
    const sets = [
      ...(mark ? [{ key: sealedWithKey, value: toBytes(mark) }] : []),
      ...(projectId ? [{ key: projectKey(projectId), value: toBytes({ id: projectId }) }] : []),
    ];
    await kv.atomic({ ...emptyWrite(), sets });
    return kv;
  };
  const walk = { key: "new", others: ["old"], next: "there" };
  const after = async (from: Json | null, into: Json | null): Promise<Json | null> => {
    const [source, target] = [await marked(from, id), await marked(into, "pw_OTHER")];
    const project = await findProjectRows(source, id);
    await copyRows({ source, target, from: "a", project }, () => {});
    const { value } = await target.get(sealedWithKey);
    return value && fromBytes<Json>(value);
  };
  const mixed = { keys: ["old", "new"], walk: null };
  assert.deepEqual(await after(mixed, { keys: ["new"], walk }), {
    keys: ["new", "old"],
    walk: null,
  });
  assert.deepEqual(await after(null, { keys: ["new"], walk: null }), {
    keys: ["new", "unknown"],
    walk: null,
  });
  assert.equal(await after(mixed, null), null, "it knows nothing of its own keys");
});

Deno.test("copy: a project whose users pay from wallets is not copied alone", async () => {
  using world = await sharedWorld();
  await assert.rejects(findProjectRows(world.deps.kv, world.projectId), /is in the shared mode/);
});
