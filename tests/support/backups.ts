import assert from "node:assert/strict";
import { verifyLedger } from "../../scripts/verify_ledger.ts";
import { runFarebox } from "./command.ts";
import { databaseOf, type Farebox } from "./process.ts";
import { adminKey, type Body, testPricing } from "./world.ts";

/** A project of a service, and a caller's key. */
interface Shop {
  projectId: string;
  key: string;
}

/** Creates a project whose model costs as in `createWorld`. */
export async function openShop(farebox: Farebox): Promise<Shop> {
  const body = { name: "Shop", pricing: testPricing };
  const made = await farebox.json("/v1/admin/projects", { key: adminKey, body });
  return { projectId: made.project.id, key: made.apiKey };
}

/** Callers that each do one thing after another. */
interface Load {
  /** For each caller: the ids of the entries that it got responses about, in order. */
  chains: readonly string[][];
  /** How many responses it got in all. */
  readonly count: number;
  stop(): Promise<void>;
}

/**
 * Deposits, charges and chats until it is stopped, or until the service has died. Each caller uses
 * its own users in turn, and waits for each response.
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
        // A killed service breaks connections; nothing else may fail.
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
interface ShopBooks {
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
 * Asserts that a restored ledger is one of a single moment: with everything that callers had
 * responses about before it, and of each caller's actions, in order, everything up to some point;
 * each entry as it was written, and each balance one that existed.
 */
export function assertOneMoment(
  { entries, users }: ShopBooks,
  { chains, toldBefore, whole }: {
    chains: Load["chains"];
    toldBefore: readonly string[];
    whole: ShopBooks;
  },
): void {
  // A call that ran at that moment was interrupted: its hold has expired since.
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

/** Asserts that the whole database of a service verifies. */
export async function assertVerified(farebox: Farebox): Promise<void> {
  const { faults, checked } = await verifyLedger({ url: farebox.url, adminKey });
  assert.deepEqual(faults, []);
  assert.ok((checked.entries ?? 0) > 0);
}

/** Fills a stopped service's file with unused data, so that copying takes a while. */
export async function fillUp(folder: string, megabytes: number): Promise<void> {
  using kv = await Deno.openKv(databaseOf(folder));
  const value = crypto.getRandomValues(new Uint8Array(50_000));
  for (let at = 0; at < megabytes * 20; at += 10) {
    const write = kv.atomic();
    for (let n = 0; n < 10; n++) write.set(["filling", at + n], value);
    await write.commit();
  }
}

/** Returns the files beside the database in a folder. */
export function filesIn(folder: string): string[] {
  return [...Deno.readDirSync(folder)].map(({ name }) => name).sort();
}

/** Creates a backup with the command; returns its path. */
export async function backUp(farebox: Farebox, folder: string, name = "farebox.backup") {
  const out = `${folder}/${name}`;
  const ran = await runFarebox(["backup", "--out", out], { folder, url: farebox.url });
  assert.equal(ran.code, 0, ran.complaint);
  return out;
}

/** Restores with the command, where no service is reachable. */
export function restore(from: string, folder: string, args: readonly string[] = ["--yes"]) {
  return runFarebox(["restore", from, ...args], {
    folder,
    env: { KV_PATH: databaseOf(folder), ADMIN_KEY: "" },
  });
}
