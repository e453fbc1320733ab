import assert from "node:assert/strict";
import { parse } from "csv-parse/sync";
import type { Failure } from "../../scripts/farebox/failure.ts";
import { readImportFile } from "../../scripts/farebox/import_file.ts";
import { openOutput, writeAll } from "../../scripts/farebox/output_file.ts";
import { emptyAccount, encodeAccount } from "../../src/ledger/account.ts";
import { accountKey } from "../../src/store/keys.ts";
import { filesIn, openShop, readShop } from "../support/backups.ts";
import { runFarebox } from "../support/command.ts";
import { startCuttingProxy } from "../support/cutting_proxy.ts";
import {
  databaseOf,
  type Farebox,
  makeFolder,
  serviceEnv,
  startFarebox,
} from "../support/process.ts";
import { adminKey, type Body } from "../support/world.ts";

/** A service with one project, and commands in its folder. */
async function openOffice() {
  const stack = new AsyncDisposableStack();
  const folder = stack.use(await makeFolder());
  const farebox = stack.use(await startFarebox({ folder: folder.path, env: serviceEnv }));
  const shop = await openShop(farebox);
  const run = (args: readonly string[], url = farebox.url) =>
    runFarebox(args, { folder: folder.path, url });
  const write = (name: string, text: string) => Deno.writeTextFile(`${folder.path}/${name}`, text);
  const read = (name: string) => Deno.readTextFile(`${folder.path}/${name}`);
  const balances = async () =>
    Object.fromEntries((await readShop(farebox, shop)).users.map(({ user, balance }) => [
      user,
      balance,
    ]));
  return {
    farebox,
    shop,
    run,
    write,
    read,
    balances,
    files: () => filesIn(folder.path).filter((name) => !name.startsWith("farebox.kv")),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

async function depositMany(farebox: Farebox, key: string, count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, (_, n) => {
    const body = { user: `user ${n % 50}`, amount: `${n + 1}`, metadata: { note: `="${n}"` } };
    return farebox.json("/v1/user/balance/deposit", { key, body });
  }));
}

Deno.test("export command: writes what the service sends, also over connections that break", async () => {
  await using office = await openOffice();
  const { farebox, shop, run, read, files } = office;
  await depositMany(farebox, shop.key, 450);
  const path = `/v1/admin/projects/${shop.projectId}/export?what=entries`;
  const said = async (format: string) =>
    await (await farebox.call(`${path}&format=${format}`, { key: adminKey })).text();
  await using proxy = startCuttingProxy(farebox.url, { afterBytes: 50_000, cutsMax: 2 });
  const args = ["export", shop.projectId, "--what", "entries"];
  const out = ["--format", "csv", "--out", "entries.csv"];
  const ran = await run([...args, ...out, "--json"], proxy.url);
  assert.equal(ran.code, 0, ran.complaint);
  assert.equal(proxy.cuts, 2);
  assert.equal(
    ran.complaint.match(/closed early: .* Continuing after \d+ entries\.$/gm)?.length,
    2,
  );
  assert.equal(JSON.parse(ran.printed).records, 450);
  assert.equal(await read("entries.csv"), await said("csv"));
  assert.deepEqual(files(), ["entries.csv"]);
  assert.equal(parse(await read("entries.csv"), { columns: true }).length, 450);

  const printed = await run(args);
  assert.equal(printed.printed, await said("jsonl"));
  assert.match(printed.complaint, /^450 entries in \d+\.\d s$/m);
});

Deno.test("export command: a failed run leaves no file, and an earlier file as it was", async () => {
  await using office = await openOffice();
  const { shop, run, write, read, files } = office;
  await write("users.csv", "before");
  const unknown = "pw_01ARZ3NDEKTSV4RRFFQ69G5FAV";
  const wrong: [string[], number, RegExp][] = [
    [[unknown, "--out", "users.csv"], 1, /No such project/],
    [[shop.projectId, "--from", "then", "--out", "users.csv"], 1, /'from'/],
    [[shop.projectId, "--what", "keys"], 2, /Allowed choices are entries, users/],
    [[shop.projectId, "--out", "no/such/folder.csv"], 1, /cannot be written/],
    [[shop.projectId, "--out", "."], 1, /^\. cannot be written/m],
  ];
  for (const [args, code, told] of wrong) {
    const ran = await run(["export", ...args]);
    assert.equal(ran.code, code, ran.complaint);
    assert.match(ran.complaint, told);
  }
  assert.equal(await read("users.csv"), "before");
  assert.deepEqual(files(), ["users.csv"]);
});

Deno.test("export command: overlapping runs that write to one file do not disturb each other", async () => {
  await using folder = await makeFolder();
  const path = `${folder.path}/users.jsonl`;
  const [first, second, third] = [
    await openOutput(path),
    await openOutput(path),
    await openOutput(path),
  ];
  await third.write("of the third\n");
  await assert.rejects(third.fill(() => Promise.reject(new Error("broken"))), /broken/);
  await first.write("all that the first was told\n");
  await second.write("all of the second\n");
  await first.fill(async () => {});
  assert.equal(await Deno.readTextFile(path), "all that the first was told\n");
  await second.fill(async () => {});
  assert.equal(await Deno.readTextFile(path), "all of the second\n");
  assert.deepEqual(filesIn(folder.path), ["users.jsonl"]);
});

Deno.test("export command: a full disk, and a reader that is gone, are reported in one line", async () => {
  using full = await Deno.open("/dev/full", { write: true });
  const bytes = new TextEncoder().encode("text");
  const told = (error: Failure) =>
    error.exitCode === 1 && /^out cannot be written: /.test(error.message);
  await assert.rejects(writeAll(full, bytes, "out"), told);
  const left = { write: () => Promise.reject(new Deno.errors.BrokenPipe("Broken pipe")) };
  await assert.rejects(writeAll(left, bytes, "out"), told);
});

Deno.test("import command: deposits every line once, however often it runs or is interrupted", async () => {
  await using office = await openOffice();
  const { shop, run, write, balances } = office;
  const users = Array.from({ length: 120 }, (_, n) => `user-${n}`);
  await write("users.csv", ["user,amount", ...users.map((user, n) => `${user},${n}.5`)].join("\n"));
  const args = ["import", shop.projectId, "users.csv", "--json"];
  const asked = await run(args);
  assert.equal(asked.code, 2);
  assert.match(
    asked.complaint,
    /^Deposit 7200 usd to 120 users of pw_\w+\?\nThere is no terminal/m,
  );
  assert.deepEqual(await balances(), {});

  // Calls are answered and charged, but their callers never receive the response.
  await using proxy = startCuttingProxy(office.farebox.url, {
    afterBytes: 1_600,
    cutsMax: 6,
    losesLast: true,
  });
  const first = await run([...args, "--yes"], proxy.url);
  assert.equal(first.code, 0, first.complaint);
  // The caller's system decides how many calls share a connection.
  assert.ok(proxy.cuts > 0);
  const { booked, before } = JSON.parse(first.printed);
  assert.equal(booked + before, 120);
  assert.ok(before > 0, "what was booked unheard is found again");
  const second = await run([...args, "--yes"]);
  assert.deepEqual(JSON.parse(second.printed), {
    booked: 0,
    before: 120,
    failed: [],
    empty: 0,
    skipped: 0,
  });
  const expected = Object.fromEntries(users.map((user, n) => [user, `${n}.5`]));
  assert.deepEqual(await balances(), expected);
});

Deno.test("import command: deposits to the users that an export names, also names like a formula", async () => {
  await using office = await openOffice();
  const { shop, run, write, read, balances } = office;
  const users = ["+4915112345678", "-A1", "'=odd", "'plain"];
  const rows = users.map((user) => JSON.stringify({ user, amount: "1" }));
  await write("first.jsonl", rows.join("\n"));
  const into = (file: string) => run(["import", shop.projectId, file, "--yes"]);
  assert.equal((await into("first.jsonl")).code, 0);
  const out = ["--what", "users", "--format", "csv", "--out", "users.csv"];
  assert.equal((await run(["export", shop.projectId, ...out])).code, 0);
  const exported: Body[] = parse(await read("users.csv"), { columns: true });
  assert.ok(exported.every(({ user }) => /^'/.test(user)), "a spreadsheet runs none of them");
  await write("again.csv", ["user,amount", ...exported.map(({ user }) => `${user},2`)].join("\n"));
  assert.equal((await into("again.csv")).code, 0);
  assert.deepEqual(await balances(), Object.fromEntries(users.map((user) => [user, "3"])));
});

Deno.test("import command: reports every invalid line, and deposits nothing while there is one", async () => {
  await using office = await openOffice();
  const { farebox, shop, run, write, balances } = office;
  const big = JSON.stringify(JSON.stringify({ note: "x".repeat(17_000) }));
  await write(
    "users.csv",
    [
      "user,amount,metadata",
      "ada,1.50,",
      ",1,",
      "bob,-1,",
      "bob,1e3,",
      'cyd,2,"{""plan"":""pro""}"',
      "ada,3,",
      "dan,1",
      "eve,0,",
      "fay,1,[1]",
      `gil,1,${big.replaceAll('\\"', '""')}`,
      "..,4,",
      "",
    ].join("\n"),
  );
  const args = ["import", shop.projectId, "users.csv", "--yes"];
  const ran = await run(args);
  assert.equal(ran.code, 1);
  const told = ran.complaint.split("\n");
  const expected = [
    /^line 3: 'user' must not be empty\.$/,
    /^line 4: Invalid 'amount': must be a decimal greater than zero/,
    /^line 5: Invalid 'amount'/,
    /^line 7: the user is the same as in line 2$/,
    /^line 8: it has 2 cells, but the first line 3$/,
    /^line 10: Invalid 'metadata': must be a JSON object/,
    /^line 11: Invalid 'metadata': must be at most 16384 bytes/,
    /^Nothing was deposited: 7 lines are invalid\. Correct them, or use --skip-bad\.$/,
  ];
  for (const [at, line] of expected.entries()) assert.match(told[at] ?? "", line);
  assert.deepEqual(await balances(), {});

  const skipped = await run([...args, "--skip-bad"]);
  assert.equal(skipped.code, 0, skipped.complaint);
  assert.match(
    skipped.printed,
    /^3 deposited, 0 deposited before, 1 with nothing to deposit, 7 invalid lines skipped$/m,
  );
  assert.deepEqual(await balances(), { "..": "4", "ada": "1.5", "cyd": "2" });
  const { entries } = await readShop(farebox, shop);
  assert.deepEqual(entries.find(({ user }) => user === "cyd")?.metadata, { plan: "pro" });
});

Deno.test("import command: a corrected file deposits only what its batch has not", async () => {
  await using office = await openOffice();
  const { farebox, shop, run, write, balances } = office;
  assert.equal(
    (await run(["projects", "update", shop.projectId, "--settings", `{"trialCredits":"1"}`])).code,
    0,
  );
  const into = (...more: string[]) => run(["import", shop.projectId, "users.csv", ...more]);
  await write("users.csv", "user,amount\nada,5\n bob,2\ncyd,3\n");
  const bad = await into("--yes");
  assert.match(bad.complaint, /^line 3: the user begins or ends with a blank$/m);
  assert.equal((await into("--yes", "--skip-bad")).code, 0);
  assert.deepEqual(await balances(), { ada: "5", cyd: "3" }, "no trial credit on top");

  await write("users.csv", "user,amount\nada,5\nbob,2\ncyd,4\n");
  const changed = await into("--yes");
  assert.equal(changed.code, 1);
  assert.match(changed.complaint, /^line 4: 3 was deposited for cyd by this batch, not 4$/m);
  const planned = await into("--dry-run", "--skip-bad", "--json");
  assert.deepEqual(JSON.parse(planned.printed), {
    ...{ wouldBook: 1, sum: "2", before: 1, empty: 0, skipped: 1 },
  });
  const asked = await into("--skip-bad");
  assert.match(
    asked.complaint,
    /^Deposit 2 usd to 1 users of pw_\w+\? 5 usd to 1 users were deposited before\.$/m,
  );
  assert.equal((await into("--yes", "--skip-bad")).code, 0);
  assert.deepEqual(await balances(), { ada: "5", bob: "2", cyd: "3" });

  // Another batch is another import.
  assert.equal((await into("--yes", "--batch", "second")).code, 0);
  assert.deepEqual(await balances(), { ada: "10", bob: "4", cyd: "7" });
  const { entries } = await readShop(farebox, shop);
  assert.ok(entries.every(({ reason, kind }) => kind === "deposit" && reason === "opening"));
});

Deno.test("import command: reads JSON lines exactly, to the last digit", async () => {
  await using office = await openOffice();
  const { farebox, shop, run, write, balances } = office;
  const lines = [
    '{"user":"Zoë","amount":"0.000000001","metadata":{"id":12345678901234567890}}',
    "",
    '{"user":"=1+1","amount":"999999999999.999999999"}',
  ];
  await write("users.jsonl", "\ufeff" + lines.join("\r\n"));
  const ran = await run(["import", shop.projectId, "users.jsonl", "--yes"]);
  assert.equal(ran.code, 0, ran.complaint);
  assert.deepEqual(await balances(), { "Zoë": "0.000000001", "=1+1": "999999999999.999999999" });
  const path = `/v1/admin/projects/${shop.projectId}/export?what=entries`;
  const text = await (await farebox.call(path, { key: adminKey })).text();
  assert.match(text, /"metadata":\{"id":12345678901234567890\}/);

  await write(
    "bad.jsonl",
    '{"user":"a","amount":1}\n{"user":"b"}\nnonsense\n{"user":"c","amount":"1","x":1}',
  );
  const bad = await run(["import", shop.projectId, "bad.jsonl"]);
  assert.match(
    bad.complaint,
    /^line 1: Invalid 'amount': must be a decimal string such as "12\.50"\.$/m,
  );
  assert.match(bad.complaint, /^line 2: Missing required parameter: 'amount'\.$/m);
  assert.match(bad.complaint, /^line 3: it is not JSON$/m);
  assert.match(bad.complaint, /^line 4: Unknown parameter: 'x'\.$/m);
});

Deno.test("import command: users who are being erased do not hold up the others", async () => {
  await using folder = await makeFolder();
  const start = () => startFarebox({ folder: folder.path, env: serviceEnv });
  const begun = await start();
  const shop = await openShop(begun);
  begun.signal("SIGTERM");
  await begun.ended;
  const leaving = Array.from({ length: 20 }, (_, n) => `leaving-${n}`);
  await closeAccounts(folder.path, shop.projectId, leaving);
  await using farebox = await start();
  const rows = [...leaving, "ada", "bob"].map((user) => `${user},2`);
  await Deno.writeTextFile(`${folder.path}/users.csv`, ["user,amount", ...rows].join("\n"));
  const args = ["import", shop.projectId, "users.csv", "--yes"];
  const ran = await runFarebox(args, { folder: folder.path, url: farebox.url });
  assert.equal(ran.code, 1);
  assert.equal(ran.complaint.match(/^line \d+: This user is being forgotten\./gm)?.length, 20);
  assert.match(ran.complaint, /^20 lines were refused\./m);
  assert.match(ran.printed, /^2 deposited, 0 deposited before/);
  const { users } = await readShop(farebox, shop);
  const paid = users.filter(({ balance }) => balance === "2").map(({ user }) => user);
  assert.deepEqual(paid.sort(), ["ada", "bob"]);
});

/** In a stopped service's file: users in the state of an unfinished removal. */
async function closeAccounts(folder: string, projectId: string, users: string[]): Promise<void> {
  using kv = await Deno.openKv(databaseOf(folder));
  const closed = encodeAccount({ ...emptyAccount(), closed: true });
  for (const user of users) await kv.set(accountKey(projectId, user), closed);
}

Deno.test("import command: an unknown file format, or a project that takes nothing, is refused", async () => {
  await using office = await openOffice();
  const { farebox, shop, run, write } = office;
  const make = async (body: Body): Promise<string> =>
    (await farebox.json("/v1/admin/projects", { key: adminKey, body })).project.id;
  const shared = await make({ name: "Shared", mode: "shared" });
  const archived = await make({ name: "Old" });
  await farebox.json(`/v1/admin/projects/${archived}/archive`, { key: adminKey, body: {} });
  await write("users.csv", "user,amount\nada,1\n");
  await write("users.txt", "user,amount\nada,1\n");
  const cases: [string, string, number, RegExp][] = [
    [shared, "users.csv", 1, /pay into their own wallets/],
    [archived, "users.csv", 1, /is archived/],
    [shop.projectId, "missing.csv", 1, /missing\.csv cannot be read/],
    [shop.projectId, "users.txt", 2, /Use --format csv or --format jsonl/],
  ];
  for (const [project, file, code, told] of cases) {
    const ran = await run(["import", project, file, "--yes"]);
    assert.equal(ran.code, code, `${file}: ${ran.complaint}`);
    assert.match(ran.complaint, told);
  }
});

Deno.test("import command: a file without readable lines is refused as a whole", async () => {
  await using folder = await makeFolder();
  const path = `${folder.path}/file`;
  const cases: [string | Uint8Array, RegExp][] = [
    ['user,amount\n"ada,1\nbob,2\n', /is not well-formed CSV: .*line/],
    ["name,amount\nada,1\n", /must start with a line that names its columns/],
    ["user,amount,note\nada,1,x\n", /must start with a line that names its columns/],
    ["", /must start with a line that names its columns/],
    [new Uint8Array([0x75, 0xff]), /is not well-formed UTF-8/],
  ];
  for (const [content, told] of cases) {
    const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
    await Deno.writeFile(path, bytes);
    await assert.rejects(readImportFile(path, "csv"), told);
  }
});
