import { movementsApart } from "../../src/base/entry_reasons.ts";
import { entryKinds } from "../../src/base/entry_kinds.ts";
import { fromBytes } from "../../src/base/json.ts";
import { fromDecimal } from "../../src/base/money.ts";
import { absoluteAmount, type Entry, entryReason, isUse } from "../../src/ledger/entry.ts";
import { decodeSum } from "../../src/store/sums.ts";
import { startOfHour } from "../../src/summaries/hourly_counters.ts";
import type { MemoryStore } from "./memory_store.ts";
import type { Violations } from "./violations.ts";

/** Reads every entry and every stored sum, and compares them for each hour. */
export function auditSums(store: MemoryStore, violations: Violations): void {
  const said = new Map<string, bigint>();
  const kept = new Map<string, bigint>();
  /** Users who saw the paywall and did not pay, by project. */
  const paywall = new Map<string, bigint>();
  /** What responses were charged, by project: as the entries say, and as counted by key. */
  const responses = new Map<string, bigint>();
  const byKey = new Map<string, bigint>();
  /** What was collected, by project, user and hour. */
  const spent = new Map<string, bigint>();
  const rows = store.list({ prefix: ["entry"], limit: 100_000 });
  const entries = rows.flatMap(({ key, value }) =>
    value ? [{ key, entry: fromBytes<Entry>(value) }] : []
  );
  const byId = new Map(entries.map(({ entry }) => [entry.id, entry]));
  for (const { key, entry } of entries) {
    // What moves between wallets belongs to no project.
    if (entry.kind === "transfer") continue;
    const projectId = entry.projectId ?? String(key[1]);
    const isOther = entry.kind === "charge" && !isUse(entry);
    const field = isOther
      ? "other_charge"
      : entry.usage
      ? `model:${entry.usage.model}`
      : entry.kind;
    add(said, `${projectId} ${startOfHour(entry.createdAt)} ${field} count`, 1n);
    add(said, `${projectId} ${startOfHour(entry.createdAt)} ${field} amount`, due(entry));
    if (entry.usage) add(responses, projectId, due(entry));
    const original = entry.kind === "refund" && byId.get(entry.refundedActivityId ?? "");
    if (original) {
      addBack(said, `${projectId} ${startOfHour(entry.createdAt)}`, { entry, original });
    }
    if (entryKinds[entry.kind].direction === "debit") {
      const hour = new Date(entry.createdAt).toISOString().slice(0, 13);
      add(spent, `${projectId} ${entry.user} ${hour}`, fromDecimal(absoluteAmount(entry)));
    }
    addMoved(said, `${projectId} ${startOfHour(entry.createdAt)}`, entry);
    if (entry.seq === 1) addNewUser(said, `${projectId} ${startOfHour(entry.createdAt)}`);
  }
  for (const { key, value } of store.list({ prefix: ["sum"], limit: 100_000 })) {
    if (!value) continue;
    for (const [field, values] of decodeSum(value)) {
      if (/^(refused|refused_charge|failed|target|calls|unpriced):/.test(field)) continue;
      if (field.startsWith("key:")) {
        add(byKey, String(key[1]), values[6] ?? 0n);
        continue;
      }
      if (field === "paywall") {
        add(paywall, String(key[1]), (values[0] ?? 0n) - (values[1] ?? 0n));
        continue;
      }
      const [amount = 0n, more = 0n] = values.slice(field.startsWith("model:") ? 6 : 1);
      // What follows an amount that was given back is a part of it.
      const shortfall = /^back(:|$)/.test(field) ? 0n : more;
      add(kept, `${key[1]} ${key[2]} ${field} count`, values[0] ?? 0n);
      add(kept, `${key[1]} ${key[2]} ${field} amount`, amount + shortfall);
    }
  }
  for (const [project, left] of paywall) {
    violations.must(
      left >= 0n,
      "no more users paid after the paywall than saw it",
      () => `${project}: ${left}`,
    );
  }
  for (const [project, amount] of byKey) {
    violations.must(
      amount <= (responses.get(project) ?? 0n),
      "no more is counted by key than was charged",
      () => `${project}: ${amount}`,
    );
  }
  auditTopUsers(store, violations, spent);
  for (const name of new Set([...said.keys(), ...kept.keys()])) {
    violations.must(
      said.get(name) === kept.get(name),
      "the sums that are kept are those of the entries",
      () => `${name}: entries ${said.get(name)}, kept ${kept.get(name)}`,
    );
  }
}

function addNewUser(said: Map<string, bigint>, hour: string): void {
  add(said, `${hour} new_user count`, 1n);
  add(said, `${hour} new_user amount`, 0n);
}

/** Adds what the kind of an entry does not tell, by its reason and direction. */
function addMoved(said: Map<string, bigint>, hour: string, entry: Entry): void {
  const amount = fromDecimal(absoluteAmount(entry));
  const direction = entry.delta === absoluteAmount(entry) && amount > 0n ? "credit" : "debit";
  const reason = entryReason(entry);
  const moved = movementsApart.find((each) =>
    each.reason === reason && each.direction === direction
  );
  if (!moved) return;
  add(said, `${hour} moved:${moved.name} count`, 1n);
  add(said, `${hour} moved:${moved.name} amount`, amount);
}

/** A process that dies may leave a row behind what was spent; it is never ahead. */
function auditTopUsers(
  store: MemoryStore,
  violations: Violations,
  spent: ReadonlyMap<string, bigint>,
): void {
  for (const { key, value } of store.list({ prefix: ["top_users"], limit: 100_000 })) {
    const [, project, period] = key;
    if (!value || !String(period).startsWith("h")) continue;
    for (const [user, , , amount] of fromBytes<[string, number, number, string][]>(value)) {
      violations.must(
        BigInt(amount) <= (spent.get(`${project} ${user} ${String(period).slice(1)}`) ?? 0n),
        "no one is said to have spent more than they did",
        () => `${user} in ${period}: ${amount}`,
      );
    }
  }
}

/** A refund of a response or a charge is counted against its model, or where the charge is. */
function addBack(
  said: Map<string, bigint>,
  hour: string,
  { entry, original }: { entry: Entry; original: Entry },
): void {
  if (entryKinds[original.kind].direction !== "debit") return;
  const back = original.usage ? `back:${original.usage.model}` : "back";
  const field = isUse(original) ? back : "other_charge";
  add(said, `${hour} ${field} count`, isUse(original) ? 1n : 0n);
  add(said, `${hour} ${field} amount`, isUse(original) ? due(entry) : -due(entry));
}

function due(entry: Entry): bigint {
  return fromDecimal(absoluteAmount(entry)) + fromDecimal(entry.shortfall);
}

function add(sums: Map<string, bigint>, name: string, amount: bigint): void {
  sums.set(name, (sums.get(name) ?? 0n) + amount);
}
