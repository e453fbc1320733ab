import assert from "node:assert/strict";
import {
  eventually,
  type Farebox,
  makeFolder,
  serviceEnv,
  startFarebox,
} from "../support/process.ts";
import { makeProject, readBooks, startSlowUpstream } from "../support/traffic.ts";

const price = { input: "1", output: "1", reasoning: false };
const messages = [{ role: "user", content: "Hello" }];
const body = { model: "test-model", user: "ada", stream: true, messages };

function portOf({ addr }: Deno.Listener): number {
  return "port" in addr ? addr.port : 0;
}

async function paidProject(farebox: Farebox, url?: string): Promise<string> {
  const settings = { name: "Own", upstream: { url }, pricing: { models: { "test-model": price } } };
  const own = { key: serviceEnv.ADMIN_KEY, body: settings };
  const key = url === undefined
    ? await makeProject(farebox)
    : (await farebox.json("/v1/admin/projects", own)).apiKey;
  await farebox.json("/v1/user/balance/deposit", { key, body: { user: "ada", amount: "1" } });
  return key;
}

Deno.test("process: a caller that disconnects ends the upstream's call, also after a garbage collection", async () => {
  await using folder = await makeFolder();
  await using upstream = startSlowUpstream(() => 20_000);
  const huge = { hostname: "127.0.0.1", port: 0, onListen() {} };
  await using bulk = Deno.serve(huge, () => new Response("x".repeat(40 * 1024 * 1024)));
  const env = { ...serviceEnv, UPSTREAM_URL: upstream.url };
  await using farebox = await startFarebox({ folder: folder.path, env });
  const key = await paidProject(farebox);
  const leave = new AbortController();
  const response = await fetch(`${farebox.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
    signal: leave.signal,
  });
  const reader = response.body?.getReader();
  await reader?.read();
  await makeGarbage(farebox, `http://127.0.0.1:${bulk.addr.port}`);
  leave.abort();
  // By itself, it would end after 20 s.
  await eventually(() => upstream.running === 0, { withinMs: 10_000, what: "the upstream's end" });
  await eventually(async () =>
    (await farebox.json("/v1/user/balance?user=ada", { key })).held === "0"
  );
  const { entries } = await readBooks(farebox, key, "ada");
  assert.equal(entries[1]?.usage.source, "estimated");
});

Deno.test("process: a disconnect before the upstream responds, or before it is called, is noticed", async () => {
  await using folder = await makeFolder();
  const stop = new AbortController();
  const local = { hostname: "127.0.0.1", port: 0, onListen() {}, signal: stop.signal };
  const silent = Deno.serve(local, () => new Promise<Response>(() => {}));
  // Accepts connections, and never answers the TLS handshake.
  using mute = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const silentUrl = `http://127.0.0.1:${silent.addr.port}`;
  await using farebox = await startFarebox({ folder: folder.path, env: serviceEnv });
  const asked = { url: silentUrl, entries: ["estimated"] };
  for (
    const { url, entries } of [asked, { url: `https://localhost:${portOf(mute)}`, entries: [] }]
  ) {
    const key = await paidProject(farebox, url);
    const leave = new AbortController();
    const response = await fetch(`${farebox.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ ...body, metadata: { padding: "x".repeat(5_000) } }),
      signal: leave.signal,
    });
    await response.body?.getReader().read();
    leave.abort();
    // Only the balance: sums that are read while the charge is written need not match.
    const isOver = async () =>
      (await farebox.json("/v1/user/balance?user=ada", { key })).held === "0";
    await eventually(isOver, { what: "the end of the hold" });
    const books = await readBooks(farebox, key, "ada");
    assert.deepEqual(books.entries.slice(1).map(({ usage }) => usage.source), entries);
  }
  stop.abort();
});

/** Sends bodies that are too large until the service's memory has surely been collected. */
async function makeGarbage(farebox: Farebox, url: string): Promise<void> {
  const settings = { name: "Bulk", upstream: { url }, pricing: { models: { m: price } } };
  const { apiKey } = await farebox.json("/v1/admin/projects", {
    key: serviceEnv.ADMIN_KEY,
    body: settings,
  });
  const money = { user: "eve", amount: "9" };
  await farebox.json("/v1/user/balance/deposit", { key: apiKey, body: money });
  for (let round = 0; round < 3; round++) {
    const chat = { model: "m", user: "eve", messages };
    const refused = await farebox.call("/v1/chat/completions", { key: apiKey, body: chat });
    assert.equal(refused.status, 502, await refused.text());
  }
}
