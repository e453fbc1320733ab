import assert from "node:assert/strict";
import { createLog } from "../../src/platform/log.ts";
import { createHandClock } from "../support/clock.ts";
import { eventually, freePort, makeFolder, spawnFarebox, stop } from "../support/process.ts";

/** A log, and what its output accepted: of each write as many bytes as `take` says. */
function openLog(take: (bytes: Uint8Array) => number) {
  const clock = createHandClock();
  const complaints: string[] = [];
  let written = "";
  const write = (bytes: Uint8Array) => {
    const count = take(bytes);
    written += new TextDecoder().decode(bytes.subarray(0, count));
    return count;
  };
  const { log } = createLog("info", { clock, write, complain: (text) => complaints.push(text) });
  return { log, clock, complaints, written: () => written };
}

const eventsIn = (text: string) =>
  text.split("\n").flatMap((line) => line.endsWith("}") ? [JSON.parse(line).event] : []);

Deno.test("log: on a full disk lines are dropped, which is reported at once, and counted later", async () => {
  let room = Infinity;
  const { log, clock, complaints, written } = openLog((bytes) => {
    if (room === 0) throw new Error("No space left on device");
    const count = Math.min(bytes.length, room);
    room -= count;
    return count;
  });
  log("error", "before");
  room = 30;
  log("error", "cut_off");
  for (const event of ["a", "b", "c"]) log("info", event);
  await clock.advance(100);
  log("error", "d");
  assert.equal(complaints.length, 1);
  assert.match(complaints[0] ?? "", /cannot be written, .*: Error: No space left on device\n$/);
  room = Infinity;
  log("info", "after");
  await clock.advance(100);
  assert.deepEqual(eventsIn(written()), ["before", "after", "log_lines_dropped"]);
  assert.match(written(), /"log_lines_dropped","lines":5\}\n$/);
  room = 0;
  log("error", "e");
  assert.equal(complaints.length, 2, "a new trouble is said anew");
});

Deno.test("log: for a slow reader lines are buffered, up to a bound", async () => {
  let room = 100;
  const { log, clock, complaints, written } = openLog((bytes) => {
    if (room === 0) throw new Deno.errors.WouldBlock("Resource temporarily unavailable");
    const count = Math.min(bytes.length, room);
    room -= count;
    return count;
  });
  const numbered = Array.from({ length: 5 }, (_, n) => `event_${n}`);
  for (const event of numbered) log("error", event);
  assert.equal(written().length, 100);
  room = Infinity;
  await clock.advance(10);
  assert.deepEqual(eventsIn(written()), numbered, "all of them, in order");
  assert.deepEqual(complaints, []);

  room = 0;
  const note = "x".repeat(100_000);
  for (let n = 0; n < 20; n++) log("error", "long", { note });
  assert.equal(complaints.length, 1);
  const before = written().length;
  room = Infinity;
  await clock.advance(10);
  const kept = eventsIn(written().slice(before));
  assert.equal(kept.pop(), "log_lines_dropped");
  assert.ok(kept.length >= 10 && kept.length < 20, `${kept.length} were kept`);
  assert.ok(written().endsWith(`"lines":${20 - kept.length}}\n`));
  assert.equal(clock.waiting, 0);
});

/**
 * Sends requests until one is answered, then logs at once and later: neither may end the process.
 */
async function assertServes(child: Deno.ChildProcess, url: string) {
  const call = async (path: string, body?: unknown) => {
    const headers = { authorization: "Bearer sk_dev", "content-type": "application/json" };
    const given = body ? { method: "POST", body: JSON.stringify(body) } : {};
    const response = await fetch(url + path, { headers, ...given });
    await response.text();
    return response.status;
  };
  await eventually(async () => await call("/healthz").catch(() => 0) === 200, {
    withinMs: 15_000,
  });
  assert.equal(await call("/v1/user/balance/deposit", { user: "ada", amount: "9" }), 200);
  await new Promise((resolve) => setTimeout(resolve, 250));
  const messages = [{ role: "user", content: "Hello" }];
  assert.equal(
    await call("/v1/chat/completions", { model: "gpt-4o-mini", user: "ada", messages }),
    502,
  );
  assert.equal(await call("/healthz"), 200);
  child.kill("SIGTERM");
  assert.equal((await child.status).code, 0);
  const complaint = await new Response(child.stderr).text();
  assert.match(complaint, /^The log cannot be written, so lines are dropped: .*\n$/);
}

/** Starts a service whose standard output is `output`, or a pipe that nobody reads. */
async function serveWithoutLog(output?: string) {
  await using folder = await makeFolder();
  const port = freePort();
  const env = { PORT: String(port), UPSTREAM_URL: "http://127.0.0.1:9" };
  const child = spawnFarebox({ folder: folder.path, dev: true, env, ...(output && { output }) });
  try {
    await child.stdout.cancel();
    await assertServes(child, `http://127.0.0.1:${port}`);
  } finally {
    stop(child);
    await child.status;
  }
}

Deno.test("log: a service whose log has no reader any more keeps serving, and stops as usual", async () => {
  await serveWithoutLog();
});

Deno.test("log: so does one whose log's disk is full", {
  ignore: Deno.build.os !== "linux",
}, () => serveWithoutLog("/dev/full"));
