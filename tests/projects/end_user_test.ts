import assert from "node:assert/strict";
import { storeAsText } from "../support/books.ts";
import { adminKey, createWorld, type World } from "../support/world.ts";

/** Text as header values carry it: one character for each byte of its UTF-8. */
const headerBytes = (text: string) => String.fromCharCode(...new TextEncoder().encode(text));

interface Named {
  body?: unknown;
  header?: string;
  /** As it appears in the path. */
  path?: string;
}

/** Requests a response with a user named in these places. */
function ask(world: World, { body, header, path }: Named, key = world.apiKey) {
  return world.json(path === undefined ? "/v1/chat/completions" : `/v1/${path}/chat/completions`, {
    key,
    headers: header === undefined ? {} : { "x-service-user": header },
    body: {
      model: "test-model",
      messages: [{ role: "user", content: "Hi" }],
      ...(body === undefined ? {} : { user: body }),
    },
  });
}

/** The user whose balance paid, among all who have one. */
async function payer(world: World, users: readonly string[], work: () => Promise<unknown>) {
  const before = await Promise.all(users.map((user) => world.balance(user)));
  await work();
  const after = await Promise.all(users.map((user) => world.balance(user)));
  return users.filter((_, index) => after[index]?.balance !== before[index]?.balance);
}

const wellFormed: [label: string, named: Named, user: string][] = [
  ["the body", { body: "ada" }, "ada"],
  ["the header", { header: "ada" }, "ada"],
  ["an empty body is none", { body: "", header: "ada" }, "ada"],
  ["the path", { path: "ada" }, "ada"],
  ["the body before the header", { body: "ada", header: "bob" }, "ada"],
  ["the body before the path", { body: "ada", path: "bob" }, "ada"],
  ["the header before the path", { header: "ada", path: "bob" }, "ada"],
  ["the header where the body says null", { body: null, header: "ada" }, "ada"],
  ["an empty header is none", { header: "", path: "ada" }, "ada"],
  ["Unicode in the body", { body: "zoë 🎈" }, "zoë 🎈"],
  ["Unicode in the header, as UTF-8", { header: headerBytes("zoë 🎈") }, "zoë 🎈"],
  ["Unicode in the path", { path: encodeURIComponent("zoë 🎈") }, "zoë 🎈"],
  ["blanks are kept", { body: " ada " }, " ada "],
  ["a slash in the path", { path: "org%2Fada" }, "org/ada"],
  ["a percent sign in the path", { path: "50%25" }, "50%"],
  ["a plus sign in the path", { path: "a+b" }, "a+b"],
  ["an address", { path: "ada@example.com" }, "ada@example.com"],
  ["a reserved word in the body", { body: "chat" }, "chat"],
  ["a reserved word in the header", { header: "user" }, "user"],
  ["a name of an object's own", { body: "__proto__" }, "__proto__"],
  ["128 characters", { body: "a".repeat(128) }, "a".repeat(128)],
  ["128 characters in the header", { header: headerBytes("é".repeat(128)) }, "é".repeat(128)],
];

Deno.test("end user: is taken from body, header or path, in this order, and kept exactly", async () => {
  using world = await createWorld();
  const users = [...new Set([...wellFormed.map(([, , user]) => user), "bob"])];
  for (const user of users) await world.deposit(user, "1");
  for (const [label, named, user] of wellFormed) {
    const paid = await payer(world, users, async () => {
      const { status, body } = await ask(world, named);
      assert.equal(status, 200, `${label}: ${JSON.stringify(body)}`);
      assert.equal(body.paywall, undefined, label);
    });
    assert.deepEqual(paid, [user], label);
  }
});

const malformed: [label: string, named: Named, param: string][] = [
  ["none", {}, "user"],
  ["null", { body: null }, "user"],
  ["a number", { body: 5 }, "user"],
  ["a number beyond doubles", { body: 12345678901234567890n }, "user"],
  ["a boolean", { body: true }, "user"],
  ["an object", { body: { id: "ada" } }, "user"],
  ["an array", { body: ["ada"] }, "user"],
  ["129 characters", { body: "a".repeat(129) }, "user"],
  ["U+0000", { body: "a\u0000b" }, "user"],
  ["a line break", { body: "a\nb" }, "user"],
  ["a tab", { body: "\tada" }, "user"],
  ["DEL", { body: "a\u007f" }, "user"],
  ["a C1 control", { body: "a\u0085b" }, "user"],
  ["half a surrogate pair", { body: "a\ud83c" }, "user"],
  ["a surrogate pair the wrong way round", { body: "\udf88\ud83c" }, "user"],
  ["a malformed body is not saved by a header", { body: 5, header: "ada" }, "user"],
  ["nor is a zero", { body: 0, header: "ada" }, "user"],
  ["a header that is Latin-1", { header: "zo\u00eb" }, "X-Service-User"],
  ["a header with an overlong form", { header: "\u00c0\u00af" }, "X-Service-User"],
  ["a header with a surrogate in UTF-8", { header: "\u00ed\u00a0\u0080" }, "X-Service-User"],
  ["a header with a C1 control", { header: headerBytes("a\u0085b") }, "X-Service-User"],
  ["a header with a tab inside", { header: "a\tb" }, "X-Service-User"],
  ["a header that is too long", { header: "a".repeat(129) }, "X-Service-User"],
  ["a path that is Latin-1", { path: "zo%eb" }, "user"],
  ["a path with half an escape", { path: "a%2" }, "user"],
  ["a path with a surrogate in UTF-8", { path: "%ed%a0%80" }, "user"],
  ["a path with a NUL", { path: "a%00" }, "user"],
  ["a path that is too long", { path: "a".repeat(129) }, "user"],
];

Deno.test("end user: a malformed one, or none, is 400 and costs nothing", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const before = await storeAsText(world);
  for (const [label, named, param] of malformed) {
    const number = typeof named.body === "bigint" ? String(named.body) : null;
    const { status, body } = number
      ? await world.json("/v1/chat/completions", {
        raw: `{"model":"test-model","messages":[{"role":"user","content":"Hi"}],"user":${number}}`,
      })
      : await ask(world, named);
    assert.equal(status, 400, `${label}: ${JSON.stringify(body)}`);
    assert.equal(body.error.param, param, label);
    if (label === "none" || label === "null") assert.equal(body.error.code, "user_required", label);
  }
  assert.equal(world.upstream.calls.length, 0);
  assert.equal(await storeAsText(world), before);
});

Deno.test("end user: a path's reserved words are not users, however they are written", async () => {
  using world = await createWorld();
  const words = ["chat", "models", "user", "webhooks", "admin", "%63hat", "%75ser", "ch%61t"];
  for (const path of words) {
    const { status, body } = await ask(world, { path });
    assert.equal(status, 400, path);
    assert.equal(body.error.param, "user", path);
  }
});

Deno.test("end user: money endpoints take body or header; reads take header or query", async () => {
  using world = await createWorld();
  const deposit = (body: Record<string, unknown>, headers: Record<string, string> = {}) =>
    world.json("/v1/user/balance/deposit", { body: { amount: "1", ...body }, headers });
  assert.equal((await deposit({ user: "ada" })).body.user, "ada");
  assert.equal((await deposit({}, { "x-service-user": headerBytes("zoë") })).body.user, "zoë");
  assert.equal((await deposit({})).body.error.code, "user_required");
  const read = (query: string, headers: Record<string, string> = {}) =>
    world.json(`/v1/user/balance${query}`, { headers });
  assert.equal((await read("?user=ada")).body.user, "ada");
  assert.equal((await read("?user=zo%C3%AB")).body.user, "zoë");
  assert.equal((await read("?user=a%2Bb")).body.user, "a+b");
  assert.equal((await read("", { "x-service-user": "ada" })).body.user, "ada");
  assert.equal((await read("?user=bob", { "x-service-user": "ada" })).body.user, "ada");
  assert.equal((await read("")).body.error.code, "user_required");
  for (const query of ["?user=", "?user=%00", "?user=a%0Ab", `?user=${"a".repeat(129)}`]) {
    assert.equal((await read(query)).status, 400, query);
  }
  for (const path of ["/v1/user/activities", "/v1/user/balance/topup"]) {
    const { status, body } = await world.json(path);
    assert.equal(status, 400, path);
    assert.equal(body.error.code, "user_required", path);
  }
});

Deno.test("end user: a query that is not percent-encoded UTF-8 is 400, and not another user's", async () => {
  using world = await createWorld();
  for (const name of ["%FF", "a%2", "%", "a%ED%A0%80"]) {
    const { status, body } = await world.json(`/v1/user/balance?user=${name}`);
    assert.equal(status, 400, name);
    assert.equal(body.error.message, "'user' is not percent-encoded UTF-8.");
  }
  const { body } = await world.json("/v1/user/balance?user=100%25+%25FF");
  assert.equal(body.user, "100% %FF");
});

Deno.test("end user: a request without one is told where this very request could name it", async () => {
  using world = await createWorld();
  const told = async (path: string, body?: unknown) =>
    (await world.json(path, body === undefined ? {} : { body })).body.error.message;
  assert.match(await told("/v1/user/balance"), /send 'user' in the query, or the header/);
  assert.match(await told("/v1/user/charge", { amount: "1" }), /send 'user' in the body, or the h/);
  const { body: { error: { message: chat } } } = await ask(world, {});
  assert.match(
    chat,
    /in the body, the header 'X-Service-User', a base URL that ends in \/v1\/USER,/,
  );
  assert.match(chat, /or a key with a default user\.$/);
});

Deno.test("end user: if a project requires it, only the header counts", async () => {
  using world = await createWorld({ project: { userSource: "header" } });
  const { body: made } = await world.json(`/v1/admin/projects/${world.projectId}/keys`, {
    key: adminKey,
    body: { defaultUser: "ada" },
  });
  await world.json("/v1/user/balance/deposit", {
    body: { amount: "1" },
    headers: { "x-service-user": "ada" },
  });
  for (const named of [{ body: "ada" }, { path: "ada" }, { body: "ada", path: "ada" }, {}]) {
    for (const key of [world.apiKey, made.apiKey]) {
      const { status, body } = await ask(world, named, key);
      assert.equal(status, 400, JSON.stringify(named));
      assert.equal(body.error.code, "user_required");
    }
  }
  assert.equal((await world.json("/v1/user/balance?user=ada")).status, 400);
  const { status, response } = await ask(world, { header: "ada", body: "bob", path: "carl" });
  assert.equal(status, 200);
  assert.equal(response.headers.get("x-service-balance"), "0.99998");
});
