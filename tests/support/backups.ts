import assert from "node:assert/strict";
import { verifyLedger } from "../../scripts/verify_ledger.ts";
import { runFarebox } from "./command.ts";
import { databaseOf, type Farebox } from "./process.ts";
import { adminKey, type Body, testPricing } from "./world.ts";

/** A project of a service, and a caller's key. */
export interface Shop {
  projectId: string;
  key: string;
}

/** Makes a project whose model costs as in `createWorld`. */
export async function openShop(farebox: Farebox): Promise<Shop> {
  const body = { name: "Shop", pricing: testPricing };
  const made = await farebox.json("/v1/admin/projects", { key: adminKey, body });
  return { projectId: made.project.id, key: made.apiKey };
}

/** Callers that each do one thing after the other. */
export interface Load {
  /** Of each caller: the ids of the entries that it was told of, in order. */
  chains: readonly string[][];
  /** How many it was told of in all. */
  readonly count: number;
  stop(): Promise<void>;
}

/**
 * Deposits, charges and asks for answers until it is stopped, or until the service has died. Each
 * caller goes round users of its own and does nothing before it was told of the last.
 */
export function startLoad(farebox: Farebox, { key }: Shop, callers = 8): Load {
  const chains = Array.from({ length: callers }, (): string[] => []);
  let stopped = false;
  const call = async (chain: string[], at: number) => {
    for (let turn = 0; !stopped; turn++) {
      const user = `user-${at}-${turn % 5}`;
      chain.push(await doOne(farebox, key, { user, turn }));
    }
  };
  const running = Promise.all(
    chains.map((chain, at) =>
      call(chain, at).catch((error) => {
        // A service that was killed breaks connections; nothing else may go wrong.
        assert.ok(error instanceof TypeError, String(error));
      })
    ),
  );
  return {
    chains,
    get count() {
      return chains.reduce((sum, chain) => sum + chain.length, 0);
    },
    async stop() {
      stopped = true;
      await running;
    },
  };
}

async function doOne(
  farebox: Farebox,
  key: string,
  { user, turn }: { user: string; turn: number },
): Promise<string> {
  const verb = turn < 5 ? 0 : turn % 3;
  if (verb === 2) {
    const messages = [{ role: "user", content: "Hello" }];
    const body = { model: "test-model", user, max_tokens: 50, messages };
    const response = await farebox.call("/v1/chat/completions", { key, body });
    await response.json();
    return response.headers.get("x-service-activity-id") ?? assert.fail("a chat without an entry");
  }
  const path = verb === 0 ? "/v1/user/balance/deposit" : "/v1/user/charge";
  const amount = verb === 0 ? "2" : "0.000000001";
  const { success, activityId } = await farebox.json(path, { key, body: { user, amount } });
  assert.equal(success, true);
  return activityId;
}

/** All entries and all users of a project. */
export interface ShopBooks {
  entries: Body[];
  users: Body[];
}

/** Reads them as the service exports them. */
export async function readShop(farebox: Farebox, { projectId }: Shop): Promise<ShopBooks> {
  const read = async (what: string): Promise<Body[]> => {
    const path = `/v1/admin/projects/${projectId}/export?what=${what}`;
    const response = await farebox.call(path, { key: adminKey });
    const text = await response.text();
    assert.equal(response.status, 200, text);
    return text.split("\n").slice(0, -1).map((line) => JSON.parse(line));
  };
  return { entries: await read("entries"), users: await read("users") };
}

/**
 * Asserts that restored books are those of one moment: with all that callers had been told before
 * it, and of what each did in order, everything up to some point; each entry as it was written, and
 * each balance one that there was.
 */
export function assertOneMoment(
  { entries, users }: ShopBooks,
  { chains, toldBefore, whole }: {
    chains: Load["chains"];
    toldBefore: readonly string[];
    whole: ShopBooks;
  },
): void {
  // An answer that ran at that moment was cut off by it: its hold has ended since, by itself.
  const ended = new Set(entries.filter(({ kind }) => kind === "expired").map(({ id }) => id));
  const copied = entries.filter(({ id }) => !ended.has(id));
  const ids = new Set(copied.map(({ id }) => id));
  const missing = toldBefore.filter((id) => !ids.has(id));
  assert.deepEqual(missing, [], "all that was told before is in it");
  for (const chain of chains) {
    const here = chain.map((id) => ids.has(id));
    assert.equal(here.lastIndexOf(true) + 1, here.filter(Boolean).length, "no gap in what it did");
  }
  const byId = new Map(whole.entries.map((entry) => [entry.id, entry]));
  for (const entry of copied) assert.deepEqual(entry, byId.get(entry.id));
  for (const { balance, lastActivityId } of users) {
    if (ended.has(lastActivityId)) continue;
    assert.equal(balance, byId.get(lastActivityId)?.balanceAfter, "a balance that there was");
  }
}

/** Asserts that everything in the database of a service agrees. */
export async function assertVerified(farebox: Farebox): Promise<void> {
  const { faults, checked } = await verifyLedger({ url: farebox.url, adminKey });
  assert.deepEqual(faults, []);
  assert.ok((checked.entries ?? 0) > 0);
}

/** Fills a stopped service's file up with what nobody reads, so that copying takes a while. */
export async function fillUp(folder: string, megabytes: number): Promise<void> {
  using kv = await Deno.openKv(databaseOf(folder));
  const value = crypto.getRandomValues(new Uint8Array(50_000));
  for (let at = 0; at < megabytes * 20; at += 10) {
    const write = kv.atomic();
    for (let n = 0; n < 10; n++) write.set(["filling", at + n], value);
    await write.commit();
  }
}

/** What lies beside the database in a folder. */
export function filesIn(folder: string): string[] {
  return [...Deno.readDirSync(folder)].map(({ name }) => name).sort();
}

/** Makes a backup by its command; gives its path. */
export async function backUp(farebox: Farebox, folder: string, name = "farebox.backup") {
  const out = `${folder}/${name}`;
  const ran = await runFarebox(["backup", "--out", out], { folder, url: farebox.url });
  assert.equal(ran.code, 0, ran.complaint);
  return out;
}

/** Restores by its command, where no service can be reached. */
export function restore(from: string, folder: string, args: readonly string[] = ["--yes"]) {
  return runFarebox(["restore", from, ...args], {
    folder,
    env: { KV_PATH: databaseOf(folder), ADMIN_KEY: "" },
  });
}
