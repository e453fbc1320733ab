import assert from "node:assert/strict";
import { fromBytes } from "../../src/base/json.ts";
import { fromDecimal, zero } from "../../src/base/money.ts";
import { type Account, decodeAccount } from "../../src/ledger/account.ts";
import type { Entry } from "../../src/ledger/entry.ts";
import { accountKey, entryKey } from "../../src/store/keys.ts";
import type { Row } from "../../src/store/kv.ts";
import type { HandClock } from "./clock.ts";
import type { World } from "./world.ts";

/** The path that OpenAI clients call. */
export const chatPath = "/v1/chat/completions";

/** A short chat of one user, for at most 100 tokens of output. */
export function chatBody(user: string, more: Record<string, unknown> = {}) {
  return {
    model: "test-model",
    user,
    max_tokens: 100,
    messages: [{ role: "user", content: "Hi" }],
    ...more,
  };
}

/** Every row of the store except commit markers, which come and go. */
export async function storedRows(world: World): Promise<Row[]> {
  const rows = await world.deps.kv.list({ prefix: [], limit: 10_000 });
  return rows.filter(({ key }) => key[0] !== "commit" && key[0] !== "readiness");
}

/** The store as text, to assert that nothing has changed in it. */
export async function storeAsText(world: World): Promise<string> {
  const rows = await storedRows(world);
  return asText(rows.filter((row) => !isOf(row, linkRows)));
}

/**
 * The store as text, without what a refusal leaves: a link, and the counters that were written with
 * it.
 */
export async function moneyAsText(world: World): Promise<string> {
  const rows = await storedRows(world);
  const others = [...linkRows, "sum"];
  return asText(rows.filter((row) => !isOf(row, others)));
}

/** A link in a message is stored, and read by whoever opens it. */
const linkRows = ["link", "user_link"];

/** Whether a row is of one of these kinds, or says when one of them ends. */
function isOf({ key }: Row, kinds: readonly string[]): boolean {
  return kinds.includes(String(key[key[0] === "expiry" ? 3 : 0]));
}

function asText(rows: readonly Row[]): string {
  return rows.map(({ key, version }) => JSON.stringify([key, version])).join("\n");
}

/** An account exactly as it is stored, including expired holds. */
export async function storedAccount(world: World, user: string): Promise<Account> {
  return decodeAccount((await world.deps.kv.get(accountKey(world.projectId, user))).value);
}

/** A user's entries as they are stored, by `seq`. */
export async function storedEntries(world: World, user: string): Promise<Entry[]> {
  const prefix = entryKey(world.projectId, "").slice(0, -1);
  const rows = await world.deps.kv.list({ prefix, limit: 10_000 });
  return rows.map(({ value }) => fromBytes<Entry>(value ?? new Uint8Array()))
    .filter((entry) => entry.user === user)
    .sort((a, b) => a.seq - b.seq);
}

/**
 * Asserts the invariants of every account: entries sum to the balance, each states the balance
 * after it and the previous entry, `seq` has no gaps, nothing is negative.
 */
export async function checkBooks(world: World, user: string): Promise<Entry[]> {
  const account = await storedAccount(world, user);
  const entries = await storedEntries(world, user);
  assert.deepEqual(
    entries.map(({ seq }) => seq),
    entries.map((_, index) => index + 1),
    "seq counts from 1 without gaps",
  );
  let balance: bigint = zero;
  let last: string | null = null;
  for (const entry of entries) {
    balance += fromDecimal(entry.delta);
    assert.equal(fromDecimal(entry.balanceAfter), balance, `balance after entry ${entry.seq}`);
    assert.ok(balance >= 0n, `entry ${entry.seq} leaves less than zero`);
    assert.ok(fromDecimal(entry.heldAfter) <= balance, `entry ${entry.seq} eats into a hold`);
    assert.equal(entry.prev, last);
    last = entry.id;
  }
  assert.equal(account.balance, balance, "entries sum to the balance");
  assert.equal(account.seq, entries.length);
  assert.equal(account.last, last);
  assert.ok(account.held >= 0n && account.held <= account.balance);
  return entries;
}

/** Advances the clock until `work` has ended: for work that waits now and then. */
export async function whileMoving<T>(
  clock: HandClock,
  work: Promise<T>,
  { stepMs = 250, stepsMax = 400 } = {},
): Promise<T> {
  let ended = false;
  const end = () => void (ended = true);
  work.then(end, end);
  for (let step = 0; !ended; step++) {
    assert.ok(step < stepsMax, "it does not end, however the clock moves");
    await clock.advance(stepMs);
  }
  return await work;
}
