import assert from "node:assert/strict";
import { type Ran, runFarebox } from "../support/command.ts";
import { type Farebox, makeFolder, serviceEnv, startFarebox } from "../support/process.ts";
import type { Body } from "../support/world.ts";

/** A service, and its operator's commands in a folder without a `.env`. */
async function openOffice() {
  const stack = new AsyncDisposableStack();
  const folder = stack.use(await makeFolder());
  const farebox = stack.use(await startFarebox({ folder: folder.path, env: serviceEnv }));
  const run = (
    args: readonly string[],
    more: { input?: string; env?: Record<string, string> } = {},
  ) => runFarebox(args, { folder: folder.path, url: farebox.url, ...more });
  /** Runs a command that must succeed, and returns its JSON. */
  const json = async (...args: string[]): Promise<Body> => {
    const ran = await run(["--json", ...args]);
    assert.equal(ran.code, 0, ran.complaint);
    return JSON.parse(ran.printed);
  };
  return { farebox, folder, run, json, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

function assertEnds(ran: Ran, code: number, complaint: RegExp): void {
  assert.equal(ran.code, code, `${ran.printed}${ran.complaint}`);
  assert.match(ran.complaint, complaint);
}

const linesOf = (text: string) => text.trimEnd().split("\n");

Deno.test("farebox: projects and keys are created, listed, changed and ended", async () => {
  await using office = await openOffice();
  const { run, json, farebox } = office;
  const settings = JSON.stringify({ pricing: { requestFee: "0.01" } });
  const made = await run(["projects", "create", "--name", "Shop", "--settings", "-", "--json"], {
    input: settings,
  });
  assertEnds(made, 0, /shown only once/);
  const { id, apiKey, pricing } = JSON.parse(made.printed);
  assert.match(apiKey, /^sk_\w{30,}$/);
  assert.equal(pricing.requestFee, "0.01");

  const table = await run(["projects", "list"]);
  assert.equal(table.complaint, "");
  const [head, row, ...others] = linesOf(table.printed);
  assert.match(head ?? "", /^ID +NAME +CURRENCY +MODE +STATUS +CREATED$/);
  assert.match(row ?? "", new RegExp(`^${id}  Shop  usd +default  active  \\d{4}-`));
  assert.deepEqual(others, []);
  assert.equal((await json("projects", "get", id)).name, "Shop");
  assert.match((await run(["projects", "get", id])).printed, /^name +Shop$/m);
  assert.equal((await json("projects", "update", id, "--name", "Market")).name, "Market");
  assertEnds(await run(["projects", "update", id]), 2, /^Nothing to change/);

  const scopes = ["--scope", "chat", "--scope", "money"];
  const key = await json("keys", "create", ...scopes, id, "--name", "web");
  assert.deepEqual(key.key.scopes, ["chat", "money"]);
  const keys = await run(["keys", "list", id]);
  assert.match(keys.printed, /web +\w{4} +chat,money +- +\S+ +- +-$/m);
  assert.ok(!keys.printed.includes(key.apiKey));
  const asked = await run(["keys", "revoke", id, key.key.id]);
  assertEnds(asked, 2, /^Revoke key_.*\?.*\nThere is no terminal to confirm this/);
  const balance = () => farebox.call("/v1/user/balance?user=ada", { key: key.apiKey });
  assert.equal((await balance()).status, 200);
  const revoked = await run(["keys", "revoke", id, key.key.id, "--yes"]);
  assert.match(revoked.printed, /^key_\w+ was revoked at/);
  assert.equal((await balance()).status, 401);

  assertEnds(await run(["projects", "archive", id]), 2, /^Archive pw_\w+ \(Market\)\?/);
  assert.equal((await json("projects", "archive", id, "--yes")).status, "archived");
});

Deno.test("farebox: a new project's keys come first, and of its settings only the given ones", async () => {
  await using office = await openOffice();
  const { run } = office;
  const settings = '{"pricing":{"requestFee":"0.01"}}';
  const made = await run(["projects", "create", "--name", "Shop", "--settings", settings]);
  const names = linesOf(made.printed).map((line) => line.split(" ")[0]);
  const usual = ["id", "name", "currency", "mode"];
  assert.deepEqual(names, ["apiKey", "ownerKey", ...usual, "pricing"], made.complaint);
  const id = /^id +(\S+)$/m.exec(made.printed)?.[1] ?? assert.fail();
  assert.match(made.complaint, new RegExp(`^All settings: .* projects get ${id}$`, "m"));
  const updated = await run(["projects", "update", id, "--owner", "ada"]);
  assert.deepEqual(linesOf(updated.printed).map((line) => line.split(" ")[0]), [
    ...usual,
    "ownerUserId",
  ]);
  assert.ok(linesOf((await run(["projects", "get", id])).printed).length > 20);
});

Deno.test("farebox: upstreams and routes are set, listed and removed; keys are never shown", async () => {
  await using office = await openOffice();
  const { run, json } = office;
  const { id } = await json("projects", "create", "--name", "Shop");
  const set = await run(["upstreams", "set", id, "main", "--provider", "openai", "--key"], {
    input: "sk-secret\n",
  });
  assert.equal(set.printed, "main is set.\n");
  await json("upstreams", "set", id, "spare", "--url", "https://spare.example/v1");
  await json("routes", "set", id, "smart", "main=gpt-4o*3", "spare", "--strategy", "weight");
  const listed = await run(["upstreams", "list", id]);
  assert.match(listed.printed, /^main +openai +- +set +-$/m);
  assert.ok(!listed.printed.includes("sk-secret"));
  const routes = await run(["routes", "list", id]);
  assert.match(routes.printed, /^smart +weight +main=gpt-4o\*3 spare$/m);
  assertEnds(await run(["routes", "set", id, "x", "=a"]), 2, /is not a target such as/);
  assertEnds(await run(["upstreams", "set", id, "main"]), 2, /^Nothing to set/);
  const wrong = ["upstreams", "set", id, "spare", "--url", "https://spare.example/v1/responses"];
  assertEnds(await run(wrong), 1, /write 'https:\/\/spare\.example\/v1'/);
  assertEnds(await run(["upstreams", "set", id, "main", "--key"], { input: "\n" }), 2, /is empty/);
  assertEnds(await run(["upstreams", "remove", id, "main"]), 1, /names no upstream/);
  for (const list of ["upstreams", "routes"]) {
    assertEnds(await run([list, "remove", id, "mian"]), 1, /^There is no 'mian' in its /);
  }
  const shown = await run(["projects", "get", id, "--json"]);
  const sent = { input: shown.printed };
  const same = await run(["projects", "update", id, "--settings", "-", "--json"], sent);
  assert.equal(same.code, 0, same.complaint);
  const { updatedAt: _, ...after } = JSON.parse(same.printed);
  const { updatedAt: __, ...before } = JSON.parse(shown.printed);
  assert.deepEqual(after, before);
  assert.deepEqual(after.upstreams.main.apiKey, { set: true });
  await json("routes", "remove", id, "smart");
  assert.deepEqual(Object.keys((await json("upstreams", "remove", id, "main")).upstreams), [
    "spare",
  ]);
});

Deno.test("farebox: deposits are recorded once, and shown with users and activities", async () => {
  await using office = await openOffice();
  const { run, json } = office;
  const { id } = await json("projects", "create", "--name", "Shop");
  for (const user of ["..", "ada", "bob/b", "--odd"]) {
    const made = await json("deposit", "--idempotency-key", `k-${user}`, id, "--", user, "5");
    assert.deepEqual([made.user, made.balance], [user, "5"]);
  }
  const again = await json("deposit", id, "ada", "5", "--idempotency-key", "k-ada");
  assert.equal(again.balance, "5");
  const charged = await json("charge", id, "ada", "2", "--metadata", '{"order":"o-1"}');
  const refunded = await json("refund", id, "ada", charged.activityId, "--amount", "0.5");
  assert.equal(refunded.balance, "3.5");
  const short = await run(["charge", id, "ada", "100", "--json"]);
  assertEnds(short, 1, /^Nothing was charged: insufficient_funds\./);
  assert.equal(JSON.parse(short.printed).success, false);

  const list = await run(["users", "list", id, "--json"]);
  const users = linesOf(list.printed).map((line) => JSON.parse(line));
  assert.deepEqual(users.map(({ user }) => user), ["--odd", "..", "ada", "bob/b"]);
  const some = await run(["users", "list", id, "--limit", "2"]);
  assert.equal(linesOf(some.printed).length, 3);
  const cursor = /--cursor (\S+), or/.exec(some.complaint)?.[1] ?? assert.fail(some.complaint);
  const rest = await run(["users", "list", id, "--limit", "1", "--cursor", cursor, "--all"]);
  assert.match(rest.printed, /^USER .*\nada +3\.5 +0 +3\.5 +usd +3 +act_\w+\nbob\/b /);
  assert.equal(rest.complaint, "");
  assert.match(
    (await run(["users", "list", id, "--prefix", "bob"])).printed,
    /^USER.*\nbob\/b.*\n$/,
  );
  assert.equal((await json("users", "get", id, "..")).balance, "5");
  assert.match((await run(["users", "get", id, "ada"])).printed, /^available +3\.5$/m);
  const activities = await run(["users", "activities", id, "ada"]);
  assert.match(
    activities.printed,
    /refund +0\.5 +3\.5 .*\n.*charge +-2 +3 .*\{"order":"o-1"\}\n.*deposit +5 +5 /,
  );
});

Deno.test("farebox: a user is erased after a confirmation, when nothing is left", async () => {
  await using office = await openOffice();
  const { run, json } = office;
  const { id } = await json("projects", "create", "--name", "Shop");
  await json("deposit", id, "ada", "5");
  assertEnds(
    await run(["users", "forget", id, "ada"]),
    2,
    /^Erase 'ada' from pw_\w+\? This cannot be/,
  );
  assertEnds(
    await run(["users", "forget", id, "ada", "--yes"]),
    1,
    /^The balance is 5 usd. Pay it out first, or use --forfeit\.\n$/,
  );
  const ran = await run(["users", "forget", id, "ada", "--yes", "--forfeit"]);
  assertEnds(ran, 0, /^$/);
  const pseudonym = /^pseudonym +(forgotten_\w{22})$/m.exec(ran.printed)?.[1] ?? assert.fail();
  assert.match(ran.printed, /^status +done$/m);
  assert.match(ran.printed, /^erased +1 forfeited, 1 entries, 1 audit rows, 1 accounts$/m);
  assertEnds(await run(["users", "get", id, "ada"]), 1, /^No such user\.$/m);
  assert.equal((await json("users", "get", id, pseudonym)).entries, 2);
  assert.equal((await json("users", "forget", id, "ada", "--yes")).status, "done");
  assert.deepEqual((await json("verify")).faults, []);
});

Deno.test("farebox: verify and resealing report their results", async () => {
  await using office = await openOffice();
  const { run, json } = office;
  const { id } = await json("projects", "create", "--name", "Shop");
  await json("deposit", id, "ada", "5");
  const verified = await run(["verify"]);
  assertEnds(verified, 0, /^$/);
  assert.match(verified.printed, /1 accounts\n[^]*Everything holds\.\n$/);
  assert.deepEqual((await json("verify")).faults, []);
  assert.deepEqual(await json("secrets", "reseal"), { resealed: 0, unreadable: [] });
});

Deno.test("farebox: invalid usage exits with 2, and tells what to type", async () => {
  await using folder = await makeFolder();
  const at = { folder: folder.path, url: "http://127.0.0.1:9" };
  for (
    const [args, complaint] of [
      [[], /^Usage: farebox/],
      [["projects"], /^Usage: farebox projects/],
      [["project"], /unknown command 'project'\n\(Did you mean projects\?\)/],
      [["projects", "list", "--limit", "0"], /'--limit <n>'.*whole number/],
      [["projects", "list", "--colour"], /unknown option '--colour'/],
      [["projects", "create"], /A project needs a --name/],
      [
        ["projects", "create", "--name", "x", "--settings", "{bad"],
        /^--settings must be a JSON object; its value is not JSON: .*at position 1 .*- < FILE\n$/,
      ],
      [
        ["projects", "create", "--name", "x", "--settings", "/nofile"],
        /its value is not JSON: Unexpected token '\/'\. To pass a file, use --settings - < FILE\n$/,
      ],
      [["deposit", "pw_1", "ada", "1", "--metadata", "[]"], /its value is another kind of JSON\./],
      [["projects", "create", "--name", "x", "--settings", "-"], /standard input/],
      [["deposit", "pw_1", "ada"], /missing required argument 'amount'/],
      [["users", "get", "pw_1", ""], /A user id must be/],
      [["verify", "--url", "farebox.example"], /^--service is not the URL of a service/],
      ...["https://me:hunter2@h", "https://me:12/hunter2@h", "https://h?key=hunter2"].flatMap((
        url,
      ) =>
        [
          [["verify", "--service", url], /^--service is not the URL of a service/],
          [
            ["prices", "diff", url.replace("?key", "/@")],
            /^The source is not an http or https URL/,
          ],
        ] as const
      ),
      [
        ["projects", "update", "pw_1", "--settings", '{"upstreams":{"a":{"apiKey":"hunter2"}}}'],
        /^--settings has a secret, 'apiKey', .*--settings - < FILE/,
      ],
      [
        [
          "projects",
          "create",
          "--name",
          "x",
          "--settings",
          '{"stripe":{"webhookSecret":["hunter2"]}}',
        ],
        /^--settings has a secret, 'webhookSecret'/,
      ],
      [
        ["upstreams", "set", "pw_1", "a", "--settings", '{"apiKey":"hunter2"}'],
        /^--settings has a secret, 'apiKey'/,
      ],
    ] as const
  ) {
    const ran = await runFarebox(args, at);
    assertEnds(ran, 2, complaint);
    assert.equal(ran.printed, "", args.join(" "));
    assert.ok(!ran.complaint.includes("hunter2"), ran.complaint);
  }
  const byVariable = { FAREBOX_URL: "https://me:hunter2@h" };
  const named = await runFarebox(["verify"], { folder: folder.path, env: byVariable });
  assertEnds(named, 2, /^FAREBOX_URL is not the URL of a service/);
  assert.ok(!named.complaint.includes("hunter2"));
  assertEnds(
    await runFarebox(["verify", "--url", "https://farebox.test"], {
      ...at,
      env: { ADMIN_KEY: "" },
    }),
    2,
    /ADMIN_KEY is not set/,
  );
  const help = await runFarebox(["--help"], at);
  assertEnds(help, 0, /^$/);
  assert.match(help.printed, /Exit codes:\n {2}0 {2}success\n {2}1 .*\n {2}2 .*\n {2}3 /);
});

const fareboxSaid = JSON.stringify({ status: "ok", service: "farebox" });

/** Says that it is Farebox, then reads a request, and closes the connection without a response. */
function startMute(): Disposable & { url: string } {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const closeAll = async () => {
    for await (const connection of listener) {
      const bytes = new Uint8Array(4096);
      const length = await connection.read(bytes) ?? 0;
      if (new TextDecoder().decode(bytes.subarray(0, length)).startsWith("GET /healthz ")) {
        const head = `HTTP/1.1 200 OK\r\nContent-Length: ${fareboxSaid.length}\r\n`;
        const answer = `${head}Connection: close\r\n\r\n${fareboxSaid}`;
        await connection.write(new TextEncoder().encode(answer));
      }
      connection.close();
    }
  };
  void closeAll();
  return {
    url: `http://127.0.0.1:${listener.addr.port}`,
    [Symbol.dispose]: () => listener.close(),
  };
}

Deno.test("farebox: a refusal exits with 1, an unreachable service with 3, and each tells why", async () => {
  await using office = await openOffice();
  const { run, json, farebox, folder } = office;
  const { id } = await json("projects", "create", "--name", "Shop");
  for (
    const [args, complaint] of [
      [["projects", "get", "pw_1"], /^No such project\.\n$/],
      [["users", "get", id, "nobody"], /^No such user\.\n$/],
      [["deposit", "--", id, "ada", "-5"], /Invalid 'amount': must be a decimal greater than zero/],
      [["deposit", id, "ada", "1.0000000001"], /Invalid 'amount'/],
      [["refund", id, "ada", "act_1"], /Invalid 'activityId'/],
      [["projects", "create", "--name", "x", "--currency", "gold"], /Invalid 'currency'/],
      [["keys", "create", id, "--scope", "all"], /Invalid 'scopes\.0'/],
    ] as const
  ) {
    const ran = await run(args);
    assertEnds(ran, 1, complaint);
    assert.equal(ran.printed, "");
  }
  const env = { ADMIN_KEY: "another-key-of-at-least-32-characters" };
  const wrong = await run(["projects", "list"], { env });
  assertEnds(wrong, 1, /ADMIN_KEY must be the key that the service was started with/);
  assert.ok(!`${wrong.printed}${wrong.complaint}`.includes(env.ADMIN_KEY));

  const url = closedUrl();
  const absent = await runFarebox(["projects", "list"], { folder: folder.path, url });
  assertEnds(absent, 3, new RegExp(`^The service does not respond at ${url}. Is it running`));
  const unsent = await runFarebox(["deposit", id, "ada", "1"], { folder: folder.path, url });
  assertEnds(unsent, 3, /Is it running, and is the URL right\?[^\n]*\n$/);
  using mute = startMute();
  const unknown = await runFarebox(["deposit", id, "ada", "1"], {
    folder: folder.path,
    url: mute.url,
  });
  assertEnds(unknown, 3, /repeat the command with --idempotency-key farebox-[\w-]{36}\n$/);
  await using other = startOther();
  const foreign = await runFarebox(["projects", "list"], { folder: folder.path, url: other.url });
  assertEnds(foreign, 3, /is not Farebox: it sent 404/);
  for (const sent of ['{"status":"ok"}', '{"projects":{}}', '{"projects":[1]}', "[]", "<html>"]) {
    other.answer = () => new Response(sent);
    const ran = await runFarebox(["projects", "list"], { folder: folder.path, url: other.url });
    assertEnds(
      ran,
      3,
      /^The server at \S+ is not Farebox: it sent (not a JSON object|JSON without).*\n$/,
    );
  }
  await fileSettings(farebox, folder.path);
});

/** The settings of a `.env` apply where the environment has none. */
async function fileSettings(farebox: Farebox, folder: string): Promise<void> {
  const { port } = new URL(farebox.url);
  const lines = [`ADMIN_KEY="${serviceEnv.ADMIN_KEY}"`, `PORT=${port}`, "OTHER=1"];
  await Deno.writeTextFile(`${folder}/.env`, lines.join("\n"));
  const ran = await runFarebox(["projects", "list"], { folder, env: { ADMIN_KEY: "" } });
  assertEnds(ran, 0, /^$/);
}

/** An address where nothing listens. */
function closedUrl(): string {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return `http://127.0.0.1:${listener.addr.port}`;
}

/** Another server, which says that it is Farebox. */
function startOther() {
  const script = { answer: () => new Response("<html>", { status: 404 }) };
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    ({ url }) => new URL(url).pathname === "/healthz" ? new Response(fareboxSaid) : script.answer(),
  );
  const url = `http://127.0.0.1:${server.addr.port}`;
  return Object.assign(script, { url, [Symbol.asyncDispose]: () => server.shutdown() });
}
