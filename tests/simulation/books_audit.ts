import { fromBytes } from "../../src/base/json.ts";
import { fromDecimal } from "../../src/base/money.ts";
import { holdsPerAccountMax } from "../../src/base/limits.ts";
import { type Account, decodeAccount, type Hold } from "../../src/ledger/account.ts";
import { absoluteAmount, type Entry } from "../../src/ledger/entry.ts";
import { isReinstatement } from "../../src/ledger/record.ts";
import { ArchiveAudit } from "./archive_audit.ts";
import type { Key, Write } from "../../src/store/kv.ts";
import { ForgottenAudit } from "./forgotten_audit.ts";
import type { MemoryStore } from "./memory_store.ts";
import { extrasOf } from "../support/model_formats.ts";
import { type ModelCall, ModelServer } from "./model_server.ts";
import { PricesAudit } from "./prices_audit.ts";
import type { Violations } from "./violations.ts";
import { auditEntry } from "./routes_audit.ts";
import { WalletsAudit } from "./wallets_audit.ts";

/** One account as its writes so far have left it. */
interface Books {
  name: string;
  balance: bigint;
  seq: number;
  last: string | null;
  holds: Set<string>;
}

/** Tracks every write of money as it lands, and keeps its own ledger. */
export class BooksAudit {
  readonly entries = new Map<string, Entry>();
  readonly #prices = new PricesAudit();
  readonly #archive: ArchiveAudit;
  readonly #forgotten: ForgottenAudit;
  readonly #wallets: WalletsAudit;
  readonly #accounts = new Map<string, Books>();
  readonly #keys = new Map<string, string>();
  readonly #refunded = new Map<string, bigint>();
  readonly #endedHolds = new Set<string>();
  readonly #charged = new Set<string>();
  /** By user: what expired holds charged without a usage. */
  readonly #expired = new Map<string, bigint>();
  readonly #model: ModelServer;
  readonly #violations: Violations;

  constructor(model: ModelServer, violations: Violations) {
    this.#model = model;
    this.#violations = violations;
    this.#archive = new ArchiveAudit(violations);
    this.#forgotten = new ForgottenAudit(violations);
    this.#wallets = new WalletsAudit(violations);
  }

  /** Called with each write that has landed. */
  landed(write: Write): void {
    const { sets } = write;
    this.#prices.landed(write);
    this.#archive.landed(write);
    this.#forgotten.landed(write);
    this.#wallets.landed(write);
    const entries = this.#newEntries(write);
    const written = new Set<string>();
    for (const { key, value } of sets) {
      if (key[0] !== "account") continue;
      const account = decodeAccount(value);
      if (account.formerly !== null) this.#move(key, account.formerly, write);
      const books = this.#booksOf(`${key[1]} ${key[2]}`);
      const names = [books.name, `${key[1]} ${account.formerly}`];
      const own = entries.filter(({ owner, entry }) =>
        names.includes(accountOf(owner, entry)) && !written.has(entry.id)
      );
      const before = new Set(books.holds);
      const after = new Set(account.holds.map(({ id }) => id));
      for (const { owner, entry } of own) {
        written.add(entry.id);
        this.#archive.booked(entry.projectId ?? owner, entry);
        this.#append(books, entry, before, after);
      }
      this.#compare(books, account);
      this.#moveHolds(books, before, after);
      const placed = account.holds.filter(({ id }) => !before.has(id));
      for (const hold of placed) this.#placeHold(hold, String(key[1]));
    }
    for (const key of write.deletes) {
      if (key[0] === "account") this.#accounts.delete(`${key[1]} ${key[2]}`);
    }
    this.#wallets.booked(entries, write);
    const moved = entries.filter(({ entry }) => entry.kind === "transfer");
    const sum = moved.reduce((total, { entry }) => total + fromDecimal(entry.delta), 0n);
    const isPair = moved.length % 2 === 0 &&
      moved.every(({ owner, entry }) =>
        moved.some((other) =>
          other.owner === entry.transfer?.wallet && other.entry.transfer?.wallet === owner &&
          other.entry.id === entry.transfer.activityId
        )
      );
    this.#must(
      sum === 0n && isPair,
      "what leaves a wallet arrives in the other",
      () => JSON.stringify(moved),
    );
    for (const { entry } of entries) {
      this.#must(written.has(entry.id), "an entry is written with its account", () => entry.id);
    }
  }

  /** In order; an existing entry is only written again for an erased user. */
  #newEntries({ sets }: Write): { owner: string; entry: Entry }[] {
    const made: { owner: string; entry: Entry }[] = [];
    for (const { key, value } of sets) {
      if (key[0] !== "entry") continue;
      const entry = fromBytes<Entry>(value);
      const known = this.entries.get(entry.id);
      if (known) this.#forgotten.renamed(known, entry);
      else made.push({ owner: String(key[1]), entry });
    }
    return made.sort((one, other) => one.entry.seq - other.entry.seq);
  }

  /** An erased user's account continues under another name as a whole; the old one is closed. */
  #move([, owner = "", to = ""]: Key, from: string, { sets }: Write): void {
    const name = `${owner} ${to}`;
    if (this.#accounts.has(name)) return;
    const books = this.#booksOf(`${owner} ${from}`);
    this.#accounts.delete(books.name);
    this.#accounts.set(name, books);
    books.name = name;
    const left = sets.find(({ key }) =>
      key[0] === "account" && key[1] === owner && key[2] === from
    );
    const isClosed = left !== undefined && decodeAccount(left.value).closed;
    this.#must(isClosed, "an erased user has one account", () => name);
  }

  /** Reads everything that is stored, and adds it up again. */
  atTheEnd(store: MemoryStore): void {
    const byAccount = new Map<string, Entry[]>();
    for (const { key, value } of store.list({ prefix: ["entry"], limit: 100_000 })) {
      if (!value) continue;
      const entry = fromBytes<Entry>(value);
      const name = accountOf(String(key[1]), entry);
      byAccount.set(name, [...byAccount.get(name) ?? [], entry]);
    }
    for (const { key, value } of store.list({ prefix: ["account"], limit: 100_000 })) {
      const name = `${key[1]} ${key[2]}`;
      const account = decodeAccount(value);
      const entries = (byAccount.get(name) ?? []).sort((one, other) => one.seq - other.seq);
      const sum = entries.reduce((total, { delta }) => total + fromDecimal(delta), 0n);
      this.#must(sum === account.balance, "entries sum to the balance", () => name);
      const gapless = entries.every(({ seq, prev }, at) =>
        seq === at + 1 && prev === (entries[at - 1]?.id ?? null)
      );
      this.#must(gapless && account.seq === entries.length, "seq has no gaps", () => name);
      this.#must(
        account.holds.length === 0,
        "every hold ends",
        () => `${name} holds ${account.holds.map(({ id }) => id).join(", ")}`,
      );
      byAccount.delete(name);
    }
    this.#must(byAccount.size === 0, "an entry is written with its account", () => "at the end");
    this.#boundExpired();
    this.#forgotten.atTheEnd(store);
  }

  #append(books: Books, entry: Entry, before: Set<string>, after: Set<string>): void {
    const about = () => `${books.name} ${JSON.stringify(entry)}`;
    const must = (holds: boolean, invariant: string) => this.#must(holds, invariant, about);
    must(entry.seq === books.seq + 1, "seq has no gaps");
    must(entry.prev === books.last, "each entry names its predecessor");
    books.balance += fromDecimal(entry.delta);
    books.seq = entry.seq;
    books.last = entry.id;
    must(books.balance >= 0n, "no balance is negative");
    must(fromDecimal(entry.balanceAfter) === books.balance, "entries sum to the balance");
    must(fromDecimal(entry.heldAfter) <= books.balance, "nothing takes held money");
    must(fromDecimal(entry.shortfall) >= 0n || isReinstatement(entry), "no balance is negative");
    this.entries.set(entry.id, entry);
    this.#oncePerKey(books, entry);
    if (entry.kind === "trial") must(entry.seq === 1, "trial credits come once");
    if (entry.kind === "refund") this.#refund(entry);
    if (isReinstatement(entry)) this.#giveBack(entry);
    if (entry.kind === "usage" || entry.kind === "expired") {
      const hold = entry.id.replace(/^act_/, "req_");
      must(before.has(hold) && !after.has(hold), "a charge ends its own hold");
    }
    if (entry.kind === "usage") this.#usage(entry);
    if (entry.kind === "expired") add(this.#expired, entry.user, dueOf(entry));
  }

  #oncePerKey({ name }: Books, { kind, idempotencyKey, id, projectId }: Entry): void {
    if (idempotencyKey === null) return;
    const key = `${projectId ?? name.split(" ")[0]} ${kind} ${idempotencyKey}`;
    this.#must(
      !this.#keys.has(key),
      "one entry per idempotency key",
      () => `${key}: ${this.#keys.get(key)} and ${id}`,
    );
    this.#keys.set(key, id);
  }

  #refund(entry: Entry): void {
    const original = this.entries.get(entry.refundedActivityId ?? "");
    const sum = (this.#refunded.get(original?.id ?? "") ?? 0n) +
      fromDecimal(absoluteAmount(entry)) + fromDecimal(entry.shortfall);
    if (original) this.#refunded.set(original.id, sum);
    const within = original !== undefined && sum <= fromDecimal(absoluteAmount(original));
    this.#must(within, "refunds never exceed the original", () => JSON.stringify(entry));
    const isAll = entry.shortfall === "0" || entry.balanceAfter === entry.heldAfter;
    this.#must(
      isAll,
      "what is paid back is taken as far as it is there",
      () => JSON.stringify(entry),
    );
  }

  #giveBack(entry: Entry): void {
    const original = entry.refundedActivityId ?? "";
    const before = this.#refunded.get(original) ?? 0n;
    const left = before - fromDecimal(entry.delta) + fromDecimal(entry.shortfall);
    this.#refunded.set(original, left);
    this.#must(
      left >= 0n,
      "no more is given back is reinstated than was refunded",
      () => JSON.stringify(entry),
    );
  }

  #usage(entry: Entry): void {
    const about = () => JSON.stringify(entry);
    const { usage } = entry;
    const call = this.#model.calls.get(entry.id.replace(/^act_/, "req_"));
    if (!usage || !call) return this.#must(false, "a charge is for a call", about);
    this.#must(!this.#charged.has(call.requestId), "a call is charged once", about);
    this.#charged.add(call.requestId);
    const input = usage.uncachedInputTokens + usage.cachedInputTokens + usage.cacheWriteTokens;
    const { outputTokens } = usage;
    const fair = usage.source === "provider"
      ? call.reported?.input === input && call.reported.output === outputTokens
      : input <= call.promptBytes && outputTokens <= call.producedBytes;
    this.#must(fair, "a charge is within what the upstream's usage allows", about);
    // A chunk that arrived as the response was cut may not have been read.
    const searches = usage.toolCalls?.web_search ?? 0;
    const tier = usage.serviceTier ?? "default";
    if (usage.source === "provider") {
      const known = extrasOf({ input, output: outputTokens });
      const isAsReported = known.searches === searches && known.tier === tier;
      this.#must(isAsReported, "a charge has the calls and the tier that were reported", about);
    }
    const used = {
      ...{ input, output: outputTokens, searches, tier },
      mayCostFee: call.producedBytes > 0,
    };
    auditEntry(this.#violations, usage, this.#model.attempts.get(call.requestId) ?? []);
    const asPriced = this.#prices.isDue(entry.id.replace(/^act_/, "req_"), dueOf(entry), used);
    this.#must(asPriced, "a charge and its shortfall are the cost at its hold's price", about);
  }

  #compare(books: Books, account: Account): void {
    const { name, balance, seq, last } = books;
    this.#must(account.balance === balance, "entries sum to the balance", () => name);
    this.#must(account.seq === seq && account.last === last, "seq has no gaps", () => name);
    const sound = account.held >= 0n && account.held <= account.balance;
    this.#must(
      sound,
      "holds are within the balance",
      () => `${name} ${account.held} of ${balance}`,
    );
    this.#must(account.holds.length <= holdsPerAccountMax, "holds are bounded", () => name);
    const isForgotten = account.closed || account.formerly !== null;
    const isFree = account.holds.length === 0 && (!account.closed || seq === 0);
    this.#must(
      isFree || !isForgotten,
      "nothing is recorded for a user who is being erased",
      () => name,
    );
  }

  #placeHold(hold: Hold, owner: string): void {
    const projectId = this.#prices.projectOf(hold, owner);
    this.#wallets.held(hold);
    this.#prices.promise(projectId, hold.id);
    this.#archive.held(projectId, hold.id);
  }

  #moveHolds(books: Books, before: Set<string>, after: Set<string>): void {
    for (const id of before) {
      if (!after.has(id)) this.#endedHolds.add(id);
    }
    for (const id of after) {
      this.#must(!this.#endedHolds.has(id), "a hold ends once", () => `${books.name} ${id}`);
    }
    books.holds = after;
  }

  /** Expired holds charge, one call each, no more than the calls that were never settled. */
  #boundExpired(): void {
    const unsettled = new Map<string, bigint>();
    for (const [requestId, attempts] of this.#model.attempts) {
      if (this.#charged.has(requestId)) continue;
      const most = attempts.map((call) => this.#prices.mostFor(mostUsedIn(call)));
      const user = attempts[0]?.user ?? "";
      add(unsettled, user, most.reduce((one, other) => (other > one ? other : one)));
    }
    for (const [user, expired] of this.#expired) {
      const most = unsettled.get(user) ?? 0n;
      const within = expired <= most;
      this.#must(
        within,
        "expired holds charge what was used",
        () => `${user} ${expired} > ${most}`,
      );
    }
  }

  #booksOf(name: string): Books {
    const known = this.#accounts.get(name);
    if (known) return known;
    const made: Books = { name, balance: 0n, seq: 0, last: null, holds: new Set() };
    this.#accounts.set(name, made);
    return made;
  }

  #must(holds: boolean, invariant: string, detail: () => string): void {
    this.#violations.must(holds, invariant, detail);
  }
}

/** Whose money an entry moved: a user's in a project, or a person's in a currency. */
function accountOf(owner: string, { user, projectId }: Entry): string {
  return `${owner} ${projectId === undefined ? user : "usd"}`;
}

function add(sums: Map<string, bigint>, name: string, amount: bigint): void {
  sums.set(name, (sums.get(name) ?? 0n) + amount);
}

/** What an entry took, and what it could not take. */
function dueOf({ delta, shortfall }: Entry): bigint {
  return fromDecimal(shortfall) - fromDecimal(delta);
}

function mostUsedIn({ promptBytes, producedBytes, reported }: ModelCall) {
  return {
    input: Math.max(promptBytes, reported?.input ?? 0),
    output: Math.max(producedBytes, reported?.output ?? 0),
    searches: 2,
    tier: "default",
  };
}
