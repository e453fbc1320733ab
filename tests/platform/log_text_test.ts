import assert from "node:assert/strict";
import type { LogFields, ShownCall } from "../../src/deps.ts";
import { createLog } from "../../src/platform/log.ts";
import { createTextLines } from "../../src/platform/log_text.ts";
import { chat, chatStream } from "../support/chat.ts";
import { createHandClock } from "../support/clock.ts";
import { createWorld } from "../support/world.ts";

const now = new Date(2026, 10, 27, 12, 3, 11).getTime();

/** A line as people see it. */
function lineOf(event: string, fields: LogFields, { level = "info", color = false } = {}): string {
  return createTextLines({ color })({ now, level, event, fields });
}

const call: ShownCall = {
  endpoint: "chat",
  status: 200,
  reason: null,
  user: "ada",
  model: "gpt-4o",
  latencyMs: 31.2,
  cost: "0.00125",
  currency: "usd",
};

Deno.test("log: people see who called which model, how long it took and what it cost", () => {
  assert.equal(
    lineOf("call", { ...call }),
    "12:03:11  POST  chat                      200    31 ms  ada            gpt-4o                  $0.00125\n",
  );
  const refused = { ...call, cost: "0", reason: "insufficient_funds" };
  assert.match(lineOf("call", refused), / 200 +31 ms +ada +gpt-4o +insufficient_funds\n$/);
  const unknown = { ...call, status: 401, user: null, model: null, reason: "invalid_api_key" };
  assert.match(lineOf("call", { ...unknown }), / 401 .* - +- .*invalid_api_key\n$/);
});

Deno.test("log: columns of calls and of other requests are aligned", () => {
  const request = { method: "GET", path: "/v1/user/balance", status: 200, ms: 2.4 };
  const lines = [lineOf("call", { ...call }), lineOf("request", request)];
  for (const part of ["200", " ms"]) {
    assert.equal(new Set(lines.map((line) => line.indexOf(part))).size, 1, lines.join(""));
  }
});

Deno.test("log: errors show their code, and below it their cause", () => {
  const path = "/v1/user/balance";
  const failed = { method: "GET", path, status: 500, ms: 1, code: "internal_error" };
  const text = lineOf("request", { ...failed, cause: "Error: gone\n    at balance.ts:3" });
  assert.match(text, / 500 .* internal_error\n {10}Error: gone\n {10} {4}at balance\.ts:3\n$/);
  const event = { delivery: "dlv_1", attempts: 8, error: "the receiver is away" };
  assert.equal(
    lineOf("webhook_errored", event, { level: "warn" }),
    '12:03:11  warn  webhook errored  delivery=dlv_1  attempts=8  error="the receiver is away"\n',
  );
});

Deno.test("log: nothing from outside reaches a terminal as a control or an invisible character", () => {
  const hostile = "a\x1b]0;owned\x07\x1b[2J\r\n\x9b1m\u202egpj.\u200b\u2066\ud800";
  const texts = [
    lineOf("call", { ...call, user: hostile, model: hostile, reason: hostile }),
    lineOf("request", { method: hostile, path: hostile, status: 404, ms: 1, code: hostile }),
    lineOf("webhook_errored", { [hostile]: hostile, more: [hostile], cause: hostile }),
  ];
  for (const text of texts) {
    assert.doesNotMatch(text.replaceAll("\n", ""), /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
    assert.match(text, /a\\u\{1b\}\]0;owned\\u\{7\}|a\\\\u\{?001b/);
  }
  assert.match(texts[0] ?? "", /^[^\n]+\n$/, "a user's name begins no line of its own");
  assert.ok(
    lineOf("call", { ...call, user: "a".repeat(5_000) }).length < 400,
    "and fills no screen",
  );
});

Deno.test("log: only a terminal that wants colors gets them", () => {
  assert.ok(!lineOf("call", { ...call }).includes("\x1b"));
  const colored = lineOf("call", { ...call }, { color: true });
  assert.ok(colored.includes("\x1b[32m200\x1b[0m"));
});

Deno.test("log: text is buffered and written as JSON is", async () => {
  const clock = createHandClock();
  let written = "";
  const write = (bytes: Uint8Array) => {
    written += new TextDecoder().decode(bytes);
    return bytes.length;
  };
  const { log } = createLog(
    "info",
    { clock, write, complain() {} },
    createTextLines({ color: false }),
  );
  log("debug", "hidden");
  log("info", "stopping", { running: 0 });
  assert.equal(written, "");
  await clock.advance(100);
  assert.match(written, /^\d\d:\d\d:\d\d {2}info {2}stopping {2}running=0\n$/);
});

Deno.test("log: each call is shown once, at its end, whole, streamed, refused or failed", async () => {
  const shown: ShownCall[] = [];
  using world = await createWorld({ showCall: (call) => void shown.push(call) });
  const seen = () => shown.splice(0).map(({ status, reason, user }) => [status, reason, user]);
  await chat(world);
  assert.deepEqual(seen(), [[200, "insufficient_funds", "ada"]]);
  await world.deposit("ada", "1");
  await chat(world);
  assert.ok(Number(shown[0]?.cost) > 0);
  assert.deepEqual([shown[0]?.model, shown[0]?.currency], ["test-model", "usd"]);
  assert.deepEqual(seen(), [[200, null, "ada"]]);
  await (await chatStream(world)).text();
  assert.deepEqual(seen(), [[200, null, "ada"]]);
  await chat(world, { model: 1 });
  assert.deepEqual(seen().map(([status]) => status), [400]);
  await chat(world, {}, { key: "sk_wrong" });
  assert.deepEqual(seen(), [], "whose project is unknown is a request like others");
  const requests = world.logged.filter(({ event }) => event === "request")
    .filter(({ path }) => path === "/v1/chat/completions").map((
      { status, shown },
    ) => [status, shown]);
  assert.deepEqual(requests, [
    [200, "call"],
    [200, "call"],
    [200, "call"],
    [400, "call"],
    [401, undefined],
  ]);
});

Deno.test("log: where the log is for programs, calls are not shown, and lines have no new field", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  await chat(world);
  const line = world.logged.find(({ path }) => path === "/v1/chat/completions");
  assert.equal(line?.status, 200);
  assert.equal("shown" in (line ?? {}), false);
});

Deno.test("log: of a text from elsewhere, the first line is logged, shortened, with the stack", () => {
  const written: string[] = [];
  const outlet = {
    clock: createHandClock(),
    write: (bytes: Uint8Array) => (written.push(new TextDecoder().decode(bytes)), bytes.length),
    complain() {},
  };
  const { log, flush } = createLog("info", outlet, ({ fields }) => `${JSON.stringify(fields)}\n`);
  const page = `<html>${"x".repeat(2_000)}\n<body>502 Bad Gateway</body>\n</html>`;
  log("warn", "away", {
    cause: `TypeError: ${page}\n    at read (kv.ts:1:2)`,
    code: "kept\nwhole",
  });
  log("warn", "away", { error: page });
  flush();
  const [first, second] = written.join("").trim().split("\n").map((line) => JSON.parse(line));
  assert.match(first.cause, /^TypeError: <html>x+…\n {4}at read \(kv\.ts:1:2\)$/);
  assert.ok(first.cause.length < 600);
  assert.equal(first.code, "kept\nwhole");
  assert.equal(second.error.length, 501);
});
