import assert from "node:assert/strict";
import { chatBody, chatPath, storeAsText } from "../support/books.ts";
import { type Body, type CallOptions, createWorld, type World } from "../support/world.ts";

const depositPath = "/v1/user/balance/deposit";
const chargePath = "/v1/user/charge";
const refundPath = "/v1/user/refund";
const moneyPaths = [depositPath, chargePath];
const postPaths = [...moneyPaths, refundPath, chatPath];

const bytes = (...parts: (string | number[])[]) =>
  new Uint8Array(
    parts.flatMap((part) => typeof part === "string" ? [...new TextEncoder().encode(part)] : part),
  );

/** OpenAI's error body, and the response's request id. */
function checkError(answer: { body: Body; response: Response }, label: string) {
  const { body, response } = answer;
  assert.deepEqual(Object.keys(body), ["error"], label);
  assert.deepEqual(Object.keys(body.error).sort(), ["code", "message", "param", "type"], label);
  assert.equal(typeof body.error.message, "string", label);
  assert.ok(body.error.message.length > 0 && body.error.message.length < 2000, label);
  assert.equal(typeof body.error.type, "string", label);
  assert.match(response.headers.get("content-type") ?? "", /^application\/json/, label);
  assert.match(response.headers.get("x-request-id") ?? "", /^[\x21-\x7e]+$/, label);
}

/** Asserts each case's status and error body, and that the store did not change. */
async function refuses(world: World, cases: [string, string, CallOptions, number][]) {
  const before = await storeAsText(world);
  for (const [label, path, options, status] of cases) {
    const answer = await world.json(path, options);
    const told = `${path} ${label}: ${JSON.stringify(answer.body).slice(0, 200)}`;
    assert.equal(answer.status, status, told);
    checkError(answer, told);
    assert.equal(world.upstream.calls.length, 0, told);
  }
  assert.equal(await storeAsText(world), before, "nothing has changed");
}

async function openWorld() {
  const world = await createWorld();
  await world.deposit("ada", "1");
  return world;
}

const deepArray = "[".repeat(60_000) + "]".repeat(60_000);
const deepObject = '{"a":'.repeat(20_000) + "1" + "}".repeat(20_000);

const notJsonObjects: [label: string, raw: BodyInit][] = [
  ["nothing", ""],
  ["blanks", "  "],
  ["null", "null"],
  ["text", '"text"'],
  ["a number", "5"],
  ["a number beyond doubles", "12345678901234567890"],
  ["an array", "[]"],
  ["an open object", '{"user":"ada"'],
  ["two objects", '{"user":"ada"}{"user":"ada"}'],
  ["single quotes", "{'user':'ada'}"],
  ["a trailing comma", '{"user":"ada",}'],
  ["a comment", '{/* */"user":"ada"}'],
  ["NaN", '{"user":"ada","amount":NaN}'],
  ["a raw control character", '{"user":"a\nb"}'],
  ["HTML", "<html></html>"],
  ["a form", "user=ada&amount=1"],
  ["invalid UTF-8", bytes('{"user":"', [0xff, 0xfe], '","amount":"1"}')],
  ["Latin-1", bytes('{"user":"zo', [0xeb], '","amount":"1"}')],
  ["a surrogate in UTF-8", bytes('{"user":"', [0xed, 0xa0, 0x80], '","amount":"1"}')],
  ["UTF-16", bytes([0xff, 0xfe], "{\0}\0")],
  ["a NUL after the end", bytes('{"user":"ada","amount":"1"}', [0])],
  ["an array nested 60,000 deep", deepArray],
  ["an object nested 20,000 deep", deepObject],
];

Deno.test("bad input: a body that is not a JSON object is 400 at every endpoint", async () => {
  using world = await openWorld();
  await refuses(
    world,
    postPaths.flatMap((path) =>
      notJsonObjects.map(([label, raw]): [string, string, CallOptions, number] => [
        label,
        path,
        { raw, method: "POST" },
        400,
      ])
    ),
  );
});

const money = { user: "ada", amount: "1" };

const badMoney: [label: string, fields: Record<string, unknown>][] = [
  ["a user that is a number", { user: 5 }],
  ["a user that is null and no header", { user: null }],
  ["a user that is an object", { user: {} }],
  ["a user with U+0000", { user: "a\u0000" }],
  ["a user with an escape sequence", { user: "a\u001b[31m" }],
  ["a user with a C1 control", { user: "a\u009b" }],
  ["a user of half a pair", { user: "\ud83c" }],
  ["an empty user", { user: "" }],
  ["a user of 129 characters", { user: "u".repeat(129) }],
  ["an amount that is a number", { amount: 1 }],
  ["an amount that is a fraction", { amount: 0.1 }],
  ["an amount that is null", { amount: null }],
  ["an amount of zero", { amount: "0" }],
  ["an amount below zero", { amount: "-1" }],
  ["an amount with an exponent", { amount: "1e3" }],
  ["an amount with ten decimals", { amount: "0.0000000001" }],
  ["an amount of 13 digits", { amount: "1000000000000" }],
  ["an amount in a list", { amount: ["1"] }],
  ["metadata as text", { metadata: "order" }],
  ["metadata as an array", { metadata: [1] }],
  ["metadata as a number", { metadata: 5 }],
  ["metadata with 51 keys", { metadata: keysOf(51) }],
  ["metadata of more than 16 KiB", { metadata: { text: "x".repeat(16 * 1024) } }],
  ["metadata of more than 16 KiB in UTF-8", { metadata: { text: "é".repeat(8 * 1024) } }],
  ["an unknown field", { currency: "usd" }],
  ["a field misspelt", { Amount: "1" }],
];

function keysOf(count: number): Record<string, number> {
  return Object.fromEntries(Array.from({ length: count }, (_, n) => [`key${n}`, n]));
}

Deno.test("bad input: invalid fields are 400 at deposit and charge, and change nothing", async () => {
  using world = await openWorld();
  await refuses(
    world,
    moneyPaths.flatMap((path) =>
      badMoney.map(([label, fields]): [string, string, CallOptions, number] => [
        label,
        path,
        { body: { ...money, ...fields } },
        400,
      ])
    ),
  );
});

Deno.test("bad input: metadata nested too deep to be written again is 400, and not 500", async () => {
  using world = await openWorld();
  const raw = (metadata: string) => `{"user":"ada","amount":"1","metadata":${metadata}}`;
  await refuses(world, [
    ["a deep object", depositPath, { raw: raw(deepObject) }, 400],
    [
      "a deep array",
      depositPath,
      { raw: raw(`{"a":${"[".repeat(50_000)}${"]".repeat(50_000)}}`) },
      400,
    ],
    ["deep, with a long number", depositPath, {
      raw: raw(`{"n":12345678901234567890,"a":${deepObject}}`),
    }, 400],
  ]);
});

Deno.test("bad input: metadata up to its limits is accepted", async () => {
  using world = await openWorld();
  const overhead = JSON.stringify({ text: "" }).length;
  for (
    const metadata of [
      {},
      null,
      keysOf(50),
      { text: "x".repeat(16 * 1024 - overhead) },
      { a: { b: [null, true, "\u0000\ud800 😀"] } },
    ]
  ) {
    const { status, body } = await world.json(depositPath, { body: { ...money, metadata } });
    assert.equal(status, 200, JSON.stringify(body));
    const [newest] = await world.activities("ada");
    assert.deepEqual(newest?.metadata, metadata);
  }
});

const badChats: [label: string, fields: Record<string, unknown>][] = [
  ["no model", { model: undefined }],
  ["a model that is a number", { model: 5 }],
  ["an empty model", { model: "" }],
  ["no messages", { messages: undefined }],
  ["messages as text", { messages: "Hi" }],
  ["an empty list of messages", { messages: [] }],
  ["a message as text", { messages: ["Hi"] }],
  ["a message without role", { messages: [{ content: "Hi" }] }],
  ["an unknown role", { messages: [{ role: "wizard", content: "Hi" }] }],
  ["content as a number", { messages: [{ role: "user", content: 5 }] }],
  ["a content part without type", { messages: [{ role: "user", content: [{ text: "Hi" }] }] }],
  ["stream as text", { stream: "true" }],
  ["n of zero", { n: 0 }],
  ["n of a fraction", { n: 1.5 }],
  ["n of a billion", { n: 1_000_000_000 }],
  ["a fraction of tokens", { max_tokens: 1.5 }],
  ["tokens as text", { max_tokens: "100" }],
  ["tools as an object", { tools: {} }],
  ["a user that is a number", { user: 5 }],
  ["a service tier with a price of its own", { service_tier: "priority" }],
  ["several models", { models: ["a", "b"] }],
  ["plugins", { plugins: [{ id: "web" }] }],
  ["a web search", { web_search_options: {} }],
];

Deno.test("bad input: an invalid chat is 400, holds nothing and is not sent", async () => {
  using world = await openWorld();
  await refuses(
    world,
    badChats.map(([label, fields]): [string, string, CallOptions, number] => [
      label,
      chatPath,
      { body: chatBody("ada", fields) },
      400,
    ]),
  );
  const raw = (field: string) => JSON.stringify(chatBody("ada")).replace(/^\{/, `{${field},`);
  await refuses(world, [
    ["tokens beyond doubles", chatPath, { raw: raw('"n":1e400') }, 400],
    ["n beyond doubles", chatPath, { raw: raw('"n":12345678901234567890') }, 400],
    ["a message as a number beyond doubles", chatPath, {
      raw: '{"model":"test-model","user":"ada","messages":[12345678901234567890]}',
    }, 400],
    ["a field nested too deep to be sent on", chatPath, { raw: raw(`"x":${deepArray}`) }, 400],
    ["an unknown model", chatPath, { body: chatBody("ada", { model: "other" }) }, 404],
  ]);
});

Deno.test("bad input: a body without a JSON content type is 415", async () => {
  using world = await openWorld();
  const types = [
    "text/plain",
    "text/json",
    "multipart/form-data; boundary=x",
    "application/x-www-form-urlencoded",
    "application/jsonp",
    "application/octet-stream",
    "",
    "json",
  ];
  await refuses(
    world,
    postPaths.flatMap((path) =>
      types.filter((type) => type !== "").map((type): [string, string, CallOptions, number] => [
        type,
        path,
        { raw: JSON.stringify(money), headers: { "content-type": type } },
        415,
      ])
    ),
  );
  for (
    const type of [
      "application/json; charset=utf-8",
      "Application/JSON",
      "application/vnd.api+json",
    ]
  ) {
    const headers = { "content-type": type };
    assert.equal((await world.json(depositPath, { body: money, headers })).status, 200, type);
  }
});

Deno.test("bad input: a body over the limit is 413, by its length or by what arrives", async () => {
  using world = await openWorld();
  const large = (length: number) =>
    JSON.stringify({ ...money, metadata: { x: "x".repeat(length) } });
  const chatLarge = JSON.stringify(chatBody("ada", { x: "x".repeat(20 * 1024 * 1024) }));
  const cases = [depositPath, chargePath, refundPath].map(
    (path): [string, string, CallOptions, number] => [
      "over 128 KiB",
      path,
      { raw: large(128 * 1024) },
      413,
    ],
  );
  await refuses(world, [
    ...cases,
    ["a stream that never ends", depositPath, { raw: endless() }, 413],
    ["a length that says so", depositPath, {
      raw: JSON.stringify(money),
      headers: { "content-length": String(128 * 1024 + 1) },
    }, 413],
    ["over 20 MiB", chatPath, { raw: chatLarge }, 413],
  ]);
});

/** An endless body, of which no more than the limit may be read. */
function endless(): ReadableStream<Uint8Array> {
  let sent = 0;
  return new ReadableStream({
    pull(controller) {
      sent += 1024;
      if (sent > 1024 * 1024) throw new Error("read far beyond the limit");
      controller.enqueue(new Uint8Array(1024).fill(0x20));
    },
  });
}

Deno.test("bad input: unknown paths are 404, with a key and without", async () => {
  using world = await openWorld();
  const paths = [
    "/v1",
    "/v2/chat/completions",
    "/v1/images/edits",
    "/favicon.ico",
  ]
    .concat(["/v1/chat", "/v1/user", "/v1/a/b/chat/completions", "/v1/user/balance/other", "/%00"]);
  for (const path of paths) {
    for (const key of [world.apiKey, null]) {
      for (const method of ["GET", "POST", "DELETE"]) {
        const answer = await world.json(path, { key, method });
        assert.equal(answer.status, 404, `${method} ${path}`);
        assert.equal(answer.body.error.code, "unknown_url", path);
        checkError(answer, path);
      }
    }
  }
});

Deno.test("bad input: a browser at an unknown path gets a page, and a program never", async () => {
  using world = await openWorld();
  const accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
  const open = async (path: string, headers: Record<string, string> = { accept }) => {
    const response = await world.call(path, { key: null, headers });
    return { response, status: response.status, text: await response.text() };
  };
  for (const path of ["/nosuch", "/topup", "/docs/nosuch", "/console/nosuch", "/v1x"]) {
    const { status, response, text } = await open(path);
    assert.deepEqual([status, response.headers.get("content-type")], [404, html], path);
    assert.match(text, /<h1>Page not found<\/h1>.*href="\/console"/s, path);
    assert.doesNotMatch(text, /URL|GET/);
    assert.equal(JSON.parse((await open(path, {})).text).error.code, "unknown_url");
  }
  for (const path of ["/console/sign-out", "/wallet/passkeys"]) {
    const { status, response, text } = await open(path);
    assert.deepEqual([status, response.headers.get("allow")], [405, "POST"], path);
    assert.match(text, /This page is not available/);
  }
  for (const path of ["/v1", "/v1/nosuch", "/v1/user/charge"]) {
    assert.equal((await open(path)).response.headers.get("content-type"), "application/json", path);
  }
});

const html = "text/html; charset=utf-8";

const allowed: [path: string, methods: string[]][] = [
  [chatPath, ["POST", "OPTIONS"]],
  ["/v1/ada/chat/completions", ["POST", "OPTIONS"]],
  ["/v1/models", ["GET", "OPTIONS"]],
  ["/v1/models/test-model", ["GET", "OPTIONS"]],
  ["/v1/ada/models/test-model", ["GET", "OPTIONS"]],
  [depositPath, ["POST"]],
  [chargePath, ["POST"]],
  [refundPath, ["POST"]],
  ["/v1/user/balance", ["GET"]],
  ["/v1/user/balance/topup", ["GET"]],
  ["/v1/user/activities", ["GET"]],
  ["/v1/admin/projects", ["GET", "POST"]],
];

Deno.test("bad input: a method that a path does not have is 405 with Allow", async () => {
  using world = await openWorld();
  const before = await storeAsText(world);
  for (const [path, methods] of allowed) {
    for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
      if (methods.includes(method)) continue;
      const answer = await world.json(path, { method });
      assert.equal(answer.status, 405, `${method} ${path}`);
      const allow = answer.response.headers.get("allow")?.split(/, */).sort();
      // RFC 9110, 9.1: a server that supports GET supports HEAD.
      const head = methods.includes("GET") ? ["HEAD"] : [];
      assert.deepEqual(allow, [...methods, ...head].sort(), path);
      checkError(answer, path);
    }
  }
  assert.equal(await storeAsText(world), before);
});

Deno.test("bad input: a path works with doubled and trailing slashes", async () => {
  using world = await openWorld();
  for (
    const path of ["/v1//chat/completions", "/v1/chat/completions/", "//v1/chat//completions//"]
  ) {
    assert.equal((await world.json(path, { body: chatBody("ada") })).status, 200, path);
  }
});
