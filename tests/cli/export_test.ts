import assert from "node:assert/strict";
import { parse } from "csv-parse/sync";
import { exportPosition } from "../../src/export/kinds.ts";
import { connectionKey, connectionsPrefix } from "../../src/store/keys.ts";
import type { Kv } from "../../src/store/kv.ts";
import { operate } from "../support/webhooks.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";
import { keysUnder, put } from "../support/verify.ts";
import { allow, charge, Device, linkFor, pay, sharedWorld } from "../support/wallets.ts";
import { chatBody, chatPath } from "../support/books.ts";

const pathOf = (world: World, query: string) =>
  `/v1/admin/projects/${world.projectId}/export?${query}`;

async function exported(world: World, query: string): Promise<Body[]> {
  const response = await world.call(pathOf(world, query), { key: adminKey });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  assert.equal(response.headers.get("content-type"), "application/jsonl");
  assert.ok(text === "" || text.endsWith("\n"));
  return text.split("\n").slice(0, -1).map((line) => JSON.parse(line));
}

async function exportedCsv(world: World, query: string): Promise<string> {
  const response = await world.call(pathOf(world, `format=csv&${query}`), { key: adminKey });
  assert.equal(response.headers.get("content-type"), "text/csv; charset=utf-8");
  return await response.text();
}

Deno.test("export: contains every entry of a project once, in order of time, as the activities show it", async () => {
  using world = await createWorld();
  for (let n = 1; n <= 450; n++) await world.deposit(`user-${n % 7}`, `${n}`);
  await world.json(chatPath, { body: chatBody("user-1") });
  const other = await world.makeProject();
  await world.json("/v1/user/balance/deposit", {
    key: other.apiKey,
    body: { user: "user-1", amount: "1" },
  });
  const entries = await exported(world, "what=entries");
  assert.equal(entries.length, 451);
  assert.deepEqual(entries.slice(0, 450).map(({ amount }) => amount), numbersTo(450));
  const ofOne = entries.filter(({ user }) => user === "user-1").reverse();
  const activities = await world.activities("user-1");
  assert.deepEqual(ofOne.map(({ wallet: _, ...entry }) => entry), activities);
});

Deno.test("export: continues after any record, without gap or repeat", async () => {
  using world = await createWorld();
  for (let n = 1; n <= 230; n++) await world.deposit(`user ${n}`, `${n}`);
  for (const kind of ["entries", "users"] as const) {
    const all = await exported(world, `what=${kind}`);
    assert.equal(all.length, 230);
    for (const at of [0, 1, 198, 199, 200, 228, 229]) {
      const after = encodeURIComponent(exportPosition(kind, all[at] ?? {}));
      assert.deepEqual(await exported(world, `what=${kind}&after=${after}`), all.slice(at + 1));
      const csv = await exportedCsv(world, `what=${kind}`);
      const rest = await exportedCsv(world, `what=${kind}&after=${after}`);
      assert.equal(csv.split("\r\n").slice(at + 2).join("\r\n"), rest);
    }
  }
});

Deno.test("export: a range selects by an entry's time, with its start and without its end", async () => {
  using world = await createWorld();
  for (let n = 1; n <= 5; n++) {
    await world.deposit("ada", `${n}`);
    await world.clock.advance(60_000);
  }
  const amounts = async (range: string) =>
    (await exported(world, `what=entries&${range}`)).map(({ amount }) => amount);
  const time = (minute: number) => `2026-01-01T00:0${minute}:00Z`;
  assert.deepEqual(await amounts(`from=${time(1)}&to=${time(3)}`), ["2", "3"]);
  assert.deepEqual(await amounts(`from=${time(4)}`), ["5"]);
  assert.deepEqual(await amounts(`to=${time(1)}`), ["1"]);
  assert.deepEqual(await amounts("from=2026-01-01&to=2026-01-02"), numbersTo(5));
  assert.deepEqual(await amounts("from=2026-01-02"), []);
  assert.deepEqual(await amounts("to=2026-01-01"), []);
});

Deno.test("export: an empty range is an empty last page", async () => {
  using world = await createWorld();
  await world.json("/v1/webhooks/subscriptions", {
    body: { url: "https://subscriber.test/hook", events: ["*"] },
  });
  await world.deposit("ada", "1");
  await world.app.dispatcher.poll();
  await world.clock.advance(1_000);
  for (const kind of ["entries", "events", "deliveries", "audit"] as const) {
    const all = await exported(world, `what=${kind}`);
    const after = exportPosition(kind, all.at(-1) ?? assert.fail(kind));
    for (
      const range of [
        `after=${after}&to=2020-01-01`,
        "to=1432-10-25",
        "to=1960-01-01",
        "from=1432-10-25&to=1960-01-01",
      ]
    ) {
      assert.deepEqual(await exported(world, `what=${kind}&${range}`), [], `${kind} ${range}`);
    }
    assert.deepEqual(await exported(world, `what=${kind}&from=1432-10-25`), all);
    if (kind === "entries") continue;
    assert.deepEqual(await exported(world, `what=${kind}&after=~~`), [], "no id is behind that");
  }
});

Deno.test("export: a person without a wallet who declines does not block it", async () => {
  using world = await sharedWorld();
  await allow(new Device(world), { user: "bob" });
  await pay(world, { user: "bob" });
  const entries = await exported(world, "what=entries");
  const said = await new Device(world).post(await linkFor(world), { decision: "decline" });
  assert.equal(said.status, 303);
  assert.equal((await keysUnder(world, connectionsPrefix(""))).length, 0);
  assert.deepEqual(await exported(world, "what=entries"), entries);
});

Deno.test("export: users have exact balances, in order of their ids", async () => {
  using world = await createWorld();
  await world.deposit("ada", "999999999999.123456789");
  await world.deposit("Zoë, “the user”", "0.000000001");
  const [zoe, ada] = await exported(world, "what=users");
  const { lastActivityId, ...rest } = ada ?? {};
  assert.match(lastActivityId, /^act_/);
  assert.deepEqual(rest, {
    user: "ada",
    currency: "usd",
    balance: "999999999999.123456789",
    held: "0",
    available: "999999999999.123456789",
    entries: 1,
    authorization: null,
  });
  assert.equal(zoe?.user, "Zoë, “the user”");
  assert.equal(zoe?.balance, "0.000000001");
  const csv = await exportedCsv(world, "what=users");
  assert.match(csv, /\r\n"Zoë, “the user”",usd,0\.000000001,0,/);
});

Deno.test("export: events and deliveries are as subscribers and the log show them", async () => {
  using world = await createWorld();
  const { body } = await world.json("/v1/webhooks/subscriptions", {
    body: { url: "https://subscriber.test/hook", events: ["balance.deposit.created"] },
  });
  for (const amount of ["1", "2"]) await world.deposit("ada", amount);
  await world.app.dispatcher.poll();
  await world.clock.advance(1_000);
  const events = await exported(world, "what=events");
  assert.deepEqual(events.map(({ data }) => data.amount), ["1", "2"]);
  const deliveries = await exported(world, "what=deliveries");
  const { body: { logs } } = await world.json("/v1/webhooks/logs");
  assert.deepEqual(
    deliveries.reverse().map(({ eventId: _, eventType: __, ...delivery }) => delivery),
    logs.map(({ event: _, ...entry }: Body) => entry),
  );
  assert.deepEqual(deliveries.map(({ eventId }) => eventId), events.map(({ id }) => id).reverse());
  assert.equal(deliveries[0]?.subscriptionId, body.subscription.id);
  const [, row] = parse(await exportedCsv(world, "what=events"));
  assert.equal(JSON.parse(row?.at(-2) ?? "").amount, "1");
});

Deno.test("export: the audit trail is as its page shows it, and continues after any row", async () => {
  using world = await createWorld();
  for (const trialCredits of ["1", "2", "3"]) {
    await operate(world, "", { method: "PATCH", body: { trialCredits } });
    await world.clock.advance(60_000);
  }
  const { body } = await operate(world, "/audit", { method: "GET" });
  const actions = await exported(world, "what=audit");
  assert.equal(actions.length, 4);
  assert.deepEqual(actions.toReversed(), body.actions);
  for (const [at, action] of actions.entries()) {
    const after = exportPosition("audit", action);
    assert.deepEqual(await exported(world, `what=audit&after=${after}`), actions.slice(at + 1));
  }
  const since = actions[3]?.at;
  assert.deepEqual(await exported(world, `what=audit&from=${since}`), actions.slice(3));
  const rows: Body[] = parse(await exportedCsv(world, "what=audit"), { columns: true });
  assert.deepEqual(JSON.parse(rows[3]?.detail).trialCredits, { from: "2", to: "3" });
});

Deno.test("export: in the shared mode, contains what a project's users spent and paid, of every wallet", async () => {
  using world = await sharedWorld();
  const second = await world.makeProject({ mode: "shared" });
  for (const user of ["ada", "bob"]) {
    const device = new Device(world);
    await allow(device, { user });
    await allow(device, { user: `${user} there`, key: second.apiKey });
    await pay(world, { user });
    assert.equal((await charge(world, "1", { user })).success, true);
    assert.equal(
      (await charge(world, "2", { user: `${user} there`, key: second.apiKey })).success,
      true,
    );
  }
  const entries = await exported(world, "what=entries");
  assert.deepEqual(entries.map(({ user, kind, amount }) => [user, kind, amount]).sort(), [
    ["ada", "charge", "1"],
    ["ada", "deposit", "10"],
    ["bob", "charge", "1"],
    ["bob", "deposit", "10"],
  ]);
  for (const [at, entry] of entries.entries()) {
    const after = encodeURIComponent(exportPosition("entries", entry));
    assert.deepEqual(await exported(world, `what=entries&after=${after}`), entries.slice(at + 1));
  }
  const users = await exported(world, "what=users");
  assert.deepEqual(
    users.map(({ user, balance, authorization }) => [user, balance, authorization.status]),
    [
      ["ada", "7", "active"],
      ["bob", "7", "active"],
    ],
  );
});

Deno.test("export: CSV preserves any text, and no cell runs as a formula", async () => {
  using world = await createWorld();
  const users = ["=1+1", "@SUM(A1)", "+1", "-A1", 'say "no", please', "a;b", "日本"];
  for (const user of users) {
    await world.json("/v1/user/balance/deposit", {
      body: { user, amount: "1", metadata: { note: `=${user}\n"x",` } },
    });
  }
  const rows: Body[] = parse(await exportedCsv(world, "what=entries"), { columns: true });
  assert.deepEqual(rows.map(({ user }) => user.replace(/^'/, "")), users);
  for (const [at, row] of rows.entries()) {
    assert.deepEqual(JSON.parse(row.metadata), { note: `=${users[at]}\n"x",` });
    for (const cell of Object.values(row)) {
      assert.ok(!/^[=+@\t\r-]/.test(cell) || /^-?[\d.]+$/.test(cell), cell);
    }
  }
});

Deno.test("export: an invalid query is refused before anything is sent", async () => {
  using world = await createWorld();
  const faults: Record<string, string> = {
    "": "what",
    "what=keys": "what",
    "what=entries&format=xml": "format",
    "what=entries&from=yesterday": "from",
    "what=entries&from=2026-01-02&to=2026-01-01": "to",
    "what=users&from=2026-01-01": "from",
    "what=entries&after=pw_1": "after",
    "what=entries&after=": "after",
    "what=entries&limit=1": "limit",
    "what=entries&what=users": "what",
  };
  for (const [query, param] of Object.entries(faults)) {
    const { status, body } = await world.json(pathOf(world, query), { key: adminKey });
    assert.deepEqual([status, body.error.param], [400, param], query);
  }
  const unknown = "/v1/admin/projects/pw_01ARZ3NDEKTSV4RRFFQ69G5FAV/export?what=users";
  assert.equal((await world.json(unknown, { key: adminKey })).status, 404);
  assert.equal((await world.json(pathOf(world, "what=users"))).status, 401);
});

Deno.test("export: reads no further than its reader, and ends with it", async () => {
  let reads = 0;
  const wrapKv = (kv: Kv): Kv => ({
    ...kv,
    list(options) {
      if (options.prefix[0] === "entry") reads++;
      return kv.list(options);
    },
  });
  using world = await createWorld({ wrapKv });
  await depositMany(world, 1_200);
  reads = 0;
  const response = await world.call(pathOf(world, "what=entries"), { key: adminKey });
  const reader = response.body?.getReader() ?? assert.fail();
  await reader.read();
  await reader.read();
  assert.ok(reads <= 3, `${reads} reads`);
  await reader.cancel();
  await new Promise((resolve) => setTimeout(resolve));
  assert.ok(reads <= 3, `${reads} reads`);
});

Deno.test("export: a store that fails in the middle aborts the stream, and is logged", async () => {
  let failing = false;
  const wrapKv = (kv: Kv): Kv => ({
    ...kv,
    list: (options) => failing ? Promise.reject(new Error("disk")) : kv.list(options),
  });
  using world = await createWorld({ wrapKv });
  await depositMany(world, 500);
  const response = await world.call(pathOf(world, "what=entries"), { key: adminKey });
  failing = true;
  await assert.rejects(response.text());
  assert.ok(world.logged.some(({ event }) => event === "export_failed"));
});

async function depositMany(world: World, count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, (_, n) => world.deposit(`user-${n}`, "1")));
}

function numbersTo(count: number): string[] {
  return Array.from({ length: count }, (_, at) => `${at + 1}`);
}

Deno.test("export: a wallet is found behind very many that do not concern the project", async () => {
  using world = await sharedWorld();
  await allow(new Device(world));
  await pay(world);
  const ids = Array.from({ length: 1_001 }, (_, n) => `per_${String(n).padStart(26, "0")}`);
  for (const id of ids) await put(world, connectionKey(id, "prj_another", "ada"), new Uint8Array());
  const entries = await exported(world, "what=entries");
  assert.deepEqual(entries.map(({ kind }) => kind), ["deposit"]);
});
