import assert from "node:assert/strict";
import { storedRows } from "../support/books.ts";
import { formFields, hiddenFields, signedIn, textOf, Visitor } from "../support/console.ts";
import { operate } from "../support/webhooks.ts";
import { adminKey, type Body, createWorld } from "../support/world.ts";

const hourMs = 60 * 60 * 1000;

Deno.test("console: a visitor without a session is redirected to the sign-in, and from there to the page", async () => {
  using world = await createWorld();
  const visitor = new Visitor(world);
  const { status, location } = await visitor.get("audit");
  assert.equal(status, 303);
  const to = `/console/projects/${world.projectId}/audit`;
  assert.equal(location, `/console/sign-in?to=${encodeURIComponent(to)}`);
  const page = await visitor.get(location ?? "");
  assert.match(page.html, /type="password"/);
  assert.match(page.headers.get("content-security-policy") ?? "", /default-src 'none'.*frame-anc/);
  const signed = await visitor.post("/console/sign-in", { key: world.ownerKey, to });
  assert.deepEqual([signed.status, signed.location], [303, to]);
  assert.match(
    textOf((await visitor.get(to)).html),
    /Audit trail.*The key …\w{4} signed in to the console/,
  );
});

Deno.test("console: the sign-in redirects to the requested page, also after a wrong key", async () => {
  using world = await createWorld();
  const visitor = new Visitor(world);
  const asked = `/console/projects/${world.projectId}/users?q=a%20b%26c&limit=5`;
  const { location } = await visitor.get(asked);
  const form = hiddenFields((await visitor.get(location ?? "")).html, "/sign-in");
  const wrong = await visitor.post("/console/sign-in", { ...form, key: "sk_wrong" });
  assert.equal(wrong.status, 401);
  const again = hiddenFields(wrong.html, "/sign-in");
  const signed = await visitor.post("/console/sign-in", { ...again, key: world.ownerKey });
  assert.deepEqual([signed.status, signed.location], [303, asked]);
});

Deno.test("console: the sign-in redirects only to pages of the console", async () => {
  using world = await createWorld();
  for (
    const to of [
      "https://evil.example/",
      "//evil.example/console",
      "/console/../v1",
      "/console/sign-out?x=1",
      "/console/sign-out",
      "/console/projects?x=1#//evil.example",
      "/console/projects?x=1\r\nset-cookie: a=b",
      "/console//evil.example",
      "javascript:alert(1)",
      "/topup/x",
    ]
  ) {
    const { location } = await new Visitor(world).post("/console/sign-in", {
      key: world.ownerKey,
      to,
    });
    assert.equal(location, `/console/projects/${world.projectId}`, to);
  }
});

Deno.test("console: the cookie is for this host and site only, and is stored as a hash", async () => {
  using world = await createWorld();
  const visitor = new Visitor(world);
  const { headers } = await visitor.signIn();
  const set = headers.get("set-cookie") ?? "";
  assert.match(
    set,
    /^__Host-farebox_console=[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure$/,
  );
  const value = visitor.cookie?.split("=")[1] ?? assert.fail();
  const rows = await storedRows(world);
  const stored = rows.map(({ key, value }) =>
    JSON.stringify(key) + new TextDecoder().decode(value ?? undefined)
  ).join();
  assert.match(stored, /console_session/);
  for (const secret of [value, world.ownerKey, adminKey]) assert.ok(!stored.includes(secret));
  using plain = await createWorld({ env: { BASE_URL: "http://localhost:8000" } });
  const local = await new Visitor(plain).signIn();
  assert.match(
    local.headers.get("set-cookie") ?? "",
    /^farebox_console=[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/,
  );
});

Deno.test("console: a wrong key, a revoked key and one that lacks a scope open nothing", async () => {
  using world = await createWorld();
  const chatOnly = (await operate(world, "/keys", { body: { scopes: ["chat"] } })).body;
  const revoked = (await operate(world, "/keys", { body: {} })).body;
  await operate(world, `/keys/${revoked.key.id}`, { method: "DELETE" });
  const attempts: [key: string, status: number, says: RegExp][] = [
    ["", 401, /not valid/],
    ["sk_wrong", 401, /not valid/],
    [revoked.apiKey, 401, /not valid/],
    [adminKey.slice(1), 401, /not valid/],
    ["sk_dev", 401, /not valid/],
    [chatOnly.apiKey, 403, /lacks the scope .owner/],
    [world.apiKey, 403, /lacks the scope .owner/],
  ];
  for (const [key, status, says] of attempts) {
    const visitor = new Visitor(world);
    const answer = await visitor.signIn(key);
    assert.equal(answer.status, status, key);
    assert.match(textOf(answer.html), says);
    assert.equal(answer.headers.get("set-cookie"), null);
    assert.equal(answer.headers.get("www-authenticate"), null);
    assert.equal((await visitor.get("audit")).status, 303);
  }
});

Deno.test("console: a session ends after 12 hours, even if its cookie is kept, and is swept", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  await owner.stayFor(12 * hourMs - 1);
  assert.equal((await owner.get("audit")).status, 200);
  await world.clock.advance(1);
  assert.equal((await owner.get("audit")).status, 303);
  await world.app.sweep();
  const left = (await storedRows(world)).filter(({ key }) => /^console/.test(String(key[0])));
  assert.deepEqual(left, []);
});

Deno.test("console: a session ends after one hour without use, and lives on with use", async () => {
  using world = await createWorld();
  const [active, idle] = [await signedIn(world), await signedIn(world)];
  await active.stayFor(3 * hourMs);
  assert.equal((await active.get("audit")).status, 200);
  assert.equal((await idle.get("audit")).status, 303);
  await world.clock.advance(hourMs - 1);
  assert.equal((await active.get("audit")).status, 200);
  await world.clock.advance(hourMs);
  const late = await active.post("settings", { name: "Late" });
  assert.equal(late.location, "/console/sign-in?flash=session-ended");
});

Deno.test("console: a session that was ended is not revived by a request of the same moment", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  const { cookie } = owner;
  await world.clock.advance(60_000);
  const [page] = await Promise.all([owner.get("audit"), owner.post("/console/sign-out")]);
  assert.ok([200, 303].includes(page.status));
  owner.cookie = cookie;
  assert.equal((await owner.get("audit")).status, 303);
});

const minuteMs = 60 * 1000;

Deno.test("console: an entered key counts for ten minutes, and wrong keys are limited", async () => {
  using world = await createWorld();
  const owner = await signedIn(world, world.ownerKey);
  const rename = async (more: Record<string, string> = {}) => {
    const page = (await owner.get("settings")).html;
    const fields = { ...formFields(page, "/settings"), name: `Name ${world.clock.now()}` };
    return (await owner.post("settings", { ...fields, ...more })).status;
  };
  assert.equal(await rename(), 303, "it was entered at the sign-in");
  await owner.stayFor(11 * minuteMs);
  assert.equal(await rename(), 401);
  assert.equal(await rename({ sessionKey: world.ownerKey }), 303);
  await owner.stayFor(9 * minuteMs);
  assert.equal(await rename(), 303);
  await owner.stayFor(2 * minuteMs);
  const attacker = new Visitor(world, "203.0.113.9");
  attacker.cookie = owner.cookie;
  const statuses: number[] = [];
  for (let n = 0; n < 12; n++) {
    statuses.push((await attacker.post("archive", { sessionKey: `sk_${n}` })).status);
  }
  assert.deepEqual(statuses, [...Array(10).fill(401), 429, 429]);
});

Deno.test("console: a form sent after the session's end reports that nothing was changed", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  await world.clock.advance(12 * hourMs);
  const sent = await owner.post("settings", { name: "Lost" });
  assert.deepEqual([sent.status, sent.location], [303, "/console/sign-in?flash=session-ended"]);
  const page = textOf((await owner.get(sent.location ?? "")).html);
  assert.match(page, /Your session had ended, so nothing was changed/);
  assert.doesNotMatch(textOf((await owner.get("/console/sign-in")).html), /no longer signed in/);
});

Deno.test("console: signing out ends the session on the server", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  const { cookie } = owner;
  const out = await owner.post("/console/sign-out");
  assert.equal(out.location, "/console/sign-in?flash=signed-out");
  assert.match(out.headers.get("set-cookie") ?? "", /Max-Age=0/);
  assert.match(textOf((await owner.get(out.location ?? "")).html), /You are signed out/);
  owner.cookie = cookie;
  assert.equal((await owner.get("audit")).status, 303);
});

Deno.test("console: a session ends with its key, everywhere within a second", async () => {
  using world = await createWorld();
  using other = await createWorld({ shareWith: world });
  const made = (await operate(world, "/keys", { body: { scopes: ["owner"] } })).body;
  const here = await signedIn(world, made.apiKey);
  const elsewhere = new Visitor(other);
  elsewhere.cookie = here.cookie;
  assert.equal((await elsewhere.get("audit")).status, 200);
  await operate(world, `/keys/${made.key.id}`, { method: "DELETE" });
  assert.equal((await here.get("audit")).status, 303);
  await world.clock.advance(1_000);
  assert.equal((await elsewhere.get("audit")).status, 303);
});

Deno.test("console: an operator's session ends when ADMIN_KEY changes, an owner's does not", async () => {
  using world = await createWorld();
  const operator = await signedIn(world, adminKey);
  const owner = await signedIn(world);
  const env = { ADMIN_KEY: "another-admin-key-of-at-least-32-characters" };
  using restarted = await createWorld({ shareWith: world, env });
  for (const [before, status] of [[operator, 303], [owner, 200]] as const) {
    const after = new Visitor(restarted);
    after.cookie = before.cookie;
    assert.equal((await after.get("audit")).status, status);
  }
  assert.equal((await operator.get("audit")).status, 200, "where the key is the same");
});

Deno.test("console: an owner sees only their own project, an operator all projects", async () => {
  using world = await createWorld();
  const other = await world.makeProject({ name: "Other shop" });
  const owner = await signedIn(world);
  assert.equal((await owner.get("/console")).location, `/console/projects/${world.projectId}`);
  for (
    const path of [
      `/console/projects/${other.projectId}/audit`,
      "/console/projects/pw_00000000000000000000000000/audit",
      "/console/projects/x/audit",
      "/console/projects",
      "/console/audit",
    ]
  ) {
    const answer = await owner.get(path);
    assert.equal(answer.status, 404, path);
    assert.doesNotMatch(answer.html, /Other shop/);
  }
  const operator = await signedIn(world, adminKey);
  assert.equal((await operator.get("/console")).location, "/console/projects");
  assert.match(textOf((await operator.get("/console/projects")).html), /Test.*Other shop/);
  const page = await operator.get(`/console/projects/${other.projectId}/audit`);
  assert.match(textOf(page.html), /The operator created the project “Other shop”/);
  assert.match(
    textOf((await operator.get("/console/audit")).html),
    /The operator signed in to the console/,
  );
});

Deno.test("console: forms from other sites are refused, and change nothing", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  for (const site of ["cross-site", "same-site"]) {
    const out = await owner.post("/console/sign-out", {}, site);
    assert.equal(out.status, 403);
    assert.equal(out.headers.get("set-cookie"), null);
    const signIn = await new Visitor(world).post("/console/sign-in", { key: world.ownerKey }, site);
    assert.equal(signIn.status, 403);
    assert.equal(signIn.headers.get("set-cookie"), null);
  }
  assert.equal((await owner.get("audit")).status, 200);
});

Deno.test("console: wrong keys are limited by address; the right one still signs in", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  const attacker = new Visitor(world, "203.0.113.9");
  const statuses: number[] = [];
  for (let n = 0; n < 12; n++) statuses.push((await attacker.signIn(`sk_${n}`)).status);
  assert.deepEqual(statuses, [...Array(10).fill(401), 429, 429]);
  const refused = await attacker.signIn("sk_12");
  assert.match(textOf(refused.html), /Try again in 6 seconds/);
  assert.equal(refused.headers.get("retry-after"), "6");
  assert.equal((await new Visitor(world, "203.0.113.10").signIn("sk_wrong")).status, 401);
  assert.equal((await owner.get("audit")).status, 200);
  for (const key of [adminKey, world.ownerKey]) {
    const behindTheSameProxy = new Visitor(world, "203.0.113.9");
    assert.equal((await behindTheSameProxy.signIn(key)).status, 303);
  }
  assert.equal((await attacker.signIn("sk_13")).status, 429);
  await world.clock.advance(6_000);
  assert.equal((await attacker.signIn("sk_14")).status, 401);
});

Deno.test("console: wrong keys from many addresses are limited too, and sessions continue", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  let limited = 0;
  for (let n = 0; n < 310; n++) {
    const { status } = await new Visitor(world, `203.0.113.${n}`).signIn("sk_wrong");
    if (status === 429) limited++;
  }
  assert.equal(limited, 10);
  assert.equal((await owner.get("audit")).status, 200);
});

Deno.test("console: an archived project can be viewed", async () => {
  using world = await createWorld();
  await operate(world, "/archive");
  const owner = await signedIn(world);
  assert.match(textOf((await owner.get("audit")).html), /The operator archived the project/);
});

Deno.test("console: in development the well-known key works only from this machine", async () => {
  using world = await createWorld({ dev: true });
  const { devProject } = await import("../../src/projects/dev_project.ts");
  const { devApiKey } = await import("../../src/base/dev_keys.ts");
  const { devProjectId } = await import("../../src/projects/auth.ts");
  await world.app.admin.ensure(devProjectId, devProject);
  const visitor = new Visitor(world);
  assert.equal((await visitor.signIn(devApiKey)).status, 303);
  const path = `/console/projects/${devProjectId}/audit`;
  assert.equal((await visitor.get(path)).status, 200);
  const tunnelled = await world.call(path, {
    key: null,
    headers: { cookie: visitor.cookie ?? "", "x-forwarded-for": "203.0.113.9" },
  });
  assert.equal(tunnelled.status, 303);
});

Deno.test("console: signing in again ends the previous session", async () => {
  using world = await createWorld();
  const owner = await signedIn(world);
  const { cookie } = owner;
  await owner.signIn(adminKey);
  assert.notEqual(owner.cookie, cookie);
  owner.cookie = cookie;
  assert.equal((await owner.get("audit")).status, 303);
  const { body } = await world.json("/v1/admin/audit", { key: adminKey });
  const [signIn] = body.actions as Body[];
  assert.deepEqual([signIn?.action, signIn?.via], ["console.signed_in", "console"]);
});
