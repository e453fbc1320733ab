import assert from "node:assert/strict";
import { activityIdOfRequest } from "../../src/ledger/entry.ts";
import {
  accountsHolding,
  eventually,
  type Farebox,
  makeFolder,
  serviceEnv,
  startFarebox,
} from "./process.ts";
import { ask, type Books, makeProject, readBooks, startSlowUpstream } from "./traffic.ts";

const users = ["ada", "bob", "cyd"];
const attemptsPerUser = 20;
const holdLifetimeMs = 60_000;

/**
 * Kills a service during many streamed and complete responses and starts it again on its file.
 * Asserts that nothing is held from its first answer on, and that no money is missing.
 */
export async function killInTheMiddle(): Promise<void> {
  await using folder = await makeFolder();
  await using upstream = startSlowUpstream((n) => 100 + (n * 379) % 1_500);
  const env = { ...serviceEnv, UPSTREAM_URL: upstream.url };
  const start = () => startFarebox({ folder: folder.path, env });
  const { key, attempts, killedAt } = await killed(await start(), () => upstream.running);
  const ended = attempts.filter((attempt) => attempt.ended);

  const holding = await accountsHolding(folder.path);
  const holds = [...holding.values()].flatMap((account) => account.holds);
  assert.ok(holds.length > 0 && holds.length <= attempts.length - ended.length);
  for (const { expiresAt } of holds) assert.ok(expiresAt <= killedAt + holdLifetimeMs);

  const farebox = await start();
  try {
    for (const user of users) {
      const books = await readBooks(farebox, key, user);
      assert.equal(books.held, "0");
      // Every caller with a response has paid for it.
      const ids = new Set(books.entries.map(({ id }) => id));
      for (const { activityId } of ended.filter((attempt) => attempt.user === user)) {
        assert.ok(activityId && ids.has(activityId), `${activityId} of ${user} is booked`);
      }
    }
    await eventually(async () => {
      const all = await Promise.all(users.map((user) => readBooks(farebox, key, user)));
      const expired = all.flatMap(({ entries }) => entries).filter((each) =>
        each.kind === "expired"
      );
      return expired.length === holds.length;
    }, { what: "the end of all holds" });
    const entries = [];
    for (const user of users) {
      const books = await readBooks(farebox, key, user);
      entries.push(...books.entries);
      assertNothingLost(books);
      assert.ok((await ask(farebox, { key, user, stream: true })).ended, "and it goes on");
    }
    const expired = entries.filter(({ kind }) => kind === "expired").map(({ id }) => id);
    // case 64
    assert.deepEqual(expired.sort(), holds.map(({ id }) => activityIdOfRequest(id)).sort());
    farebox.signal("SIGTERM");
    assert.equal((await farebox.ended).code, 0);
    assert.equal((await accountsHolding(folder.path)).size, 0);
  } finally {
    await farebox[Symbol.asyncDispose]();
  }
}

async function killed(farebox: Farebox, running: () => number) {
  await using dying = farebox;
  const key = await makeProject(dying);
  for (const user of users) {
    await dying.json("/v1/user/balance/deposit", { key, body: { user, amount: "1" } });
  }
  let ended = 0;
  const asked = users.flatMap((user) =>
    Array.from(
      { length: attemptsPerUser },
      (_, n) => ask(dying, { key, user, stream: n % 2 === 0 }).finally(() => ended++),
    )
  );
  await eventually(() => ended >= 15 && running() >= 15, { what: "the middle" });
  dying.signal("SIGKILL");
  const killedAt = Date.now();
  return { key, killedAt, attempts: await Promise.all(asked) };
}

/** A response costs 10 tokens in and 5 out; one whose service died before its end costs nothing. */
function assertNothingLost({ entries }: Books): void {
  for (const { kind, amount, shortfall } of entries) {
    const due: Record<string, string> = { deposit: "1", usage: "0.00002", expired: "0" };
    assert.equal(amount, due[kind], kind);
    assert.equal(shortfall, "0");
  }
}
