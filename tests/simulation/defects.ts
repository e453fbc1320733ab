import { fromBytes, toBytes } from "../../src/base/json.ts";
import { toAmount } from "../../src/base/money.ts";
import { bySystem } from "../../src/events/event.ts";
import { availableIn } from "../../src/ledger/account.ts";
import type { Committer } from "../../src/store/commit.ts";
import { emptyWrite, type Key, type Write } from "../../src/store/kv.ts";
import type { Delivery } from "../../src/webhooks/schema.ts";
import {
  accountTx,
  available,
  committing,
  type Defect,
  is,
  isConcerned,
  lacks,
  listing,
  withoutChecks,
  writing,
} from "./defect_seams.ts";
import { budgetDefects } from "./budget_defects.ts";
import { holderDefects } from "./holder_defects.ts";
import { forgetDefects } from "./forget_defects.ts";
import { keptDefects } from "./kept_defects.ts";
import { operatorDefects } from "./operator_defects.ts";
import { passkeyDefects } from "./passkey_defects.ts";
import { routeDefects } from "./route_defects.ts";
import { stripeDefects } from "./stripe_defects.ts";
import { alertDefects } from "./alerts_audit.ts";
import { trimDefects } from "./trim_defects.ts";
import { turnDefects } from "./turn_defects.ts";
import { walletDefects } from "./wallet_defects.ts";

const isMarker = ([name]: Key) => name === "commit";

/** Writes a result once more, as another attempt. */
async function countTwice(inner: Committer, write: Write): Promise<string | null> {
  const version = await inner.commit(write);
  for (const { key, value } of version === null ? [] : write.sets) {
    if (key[0] !== "delivery") continue;
    const delivery = fromBytes<Delivery>(value);
    if (delivery.lease !== null || delivery.attempts === 0) continue;
    const again = toBytes({ ...delivery, attempts: delivery.attempts + 1 });
    await inner.commit({ ...emptyWrite(), sets: [{ key, value: again }] });
  }
  return version;
}

/** Reports the write as landed, and then sends it. */
function boast(inner: Committer, write: Write): Promise<string | null> {
  inner.commit(write).catch(() => {});
  return Promise.resolve("00000000000000000000");
}

/** Every defect that the simulation must find. */
export const defects: readonly Defect[] = [
  {
    name: "no write checks anything but its marker",
    seams: withoutChecks((key) => !isMarker(key)),
    seedsMax: 5,
  },
  {
    name: "a balance is written on a record that may be stale",
    seams: withoutChecks(is("account")),
    seedsMax: 10,
  },
  {
    name: "money is written by settings that may be stale",
    seams: withoutChecks(is("project")),
    seedsMax: 60,
  },
  {
    name: "one write in twenty lands by half",
    seams: {
      kv: (kv, timeline) => ({
        ...kv,
        atomic(write) {
          const { sets } = write;
          const cut = sets.length > 2 && timeline.chance(0.05) ? sets.length >> 1 : sets.length;
          return kv.atomic({ ...write, sets: [...sets.slice(0, cut), ...sets.slice(-1)] });
        },
      }),
    },
    seedsMax: 5,
  },
  {
    name: "a write of unknown outcome is sent again unchanged",
    seams: {
      kv: (kv) => ({
        ...kv,
        atomic: (write) => kv.atomic(write).catch(() => kv.atomic({ ...write, checks: [] })),
      }),
    },
    seedsMax: 20,
  },
  {
    name: "a write is acknowledged before it has landed",
    seams: committing(boast),
    seedsMax: 5,
  },
  {
    name: "some holds are never removed",
    install: accountTx("takeHold", (inner) =>
      function (id) {
        const before = [...this.account.holds];
        const hold = inner.call(this, id);
        if (hold && isConcerned(id)) {
          this.account.holds.splice(0, this.account.holds.length, ...before);
          this.account.held = toAmount(this.account.held + hold.amount);
        }
        return hold;
      }),
    seedsMax: 5,
  },
  {
    name: "a charge takes money that others hold",
    install: available(function () {
      return this.account.balance;
    }),
    seedsMax: 10,
  },
  {
    name: "a charge takes more than the balance",
    install: available(function () {
      return availableIn(this.account) + 1_000_000n;
    }),
    seedsMax: 5,
  },
  {
    name: "a number of an entry is skipped",
    install: accountTx("credit", (inner) =>
      function (...given) {
        if (isConcerned(this.account.last ?? "")) this.account.seq++;
        return inner.apply(this, given);
      }),
    seedsMax: 5,
  },
  {
    name: "a response is charged twice its cost",
    install: accountTx("debit", (inner) =>
      function (amount, entry, origin) {
        const due = entry.kind === "usage" ? toAmount(2n * amount) : amount;
        return inner.call(this, due, entry, origin);
      }),
    seedsMax: 5,
  },
  {
    name: "trial credits are given twice",
    install: accountTx("credit", (inner) =>
      function (amount, entry, origin) {
        const first = entry.kind === "deposit" && this.account.seq === 1;
        if (first && this.snapshot.project.trialCredits !== "0") {
          inner.call(this, amount, { kind: "trial" }, { trigger: bySystem });
        }
        return inner.call(this, amount, entry, origin);
      }),
    seedsMax: 10,
  },
  {
    name: "an idempotency key is forgotten",
    install: accountTx("put", (inner) =>
      function (key, value) {
        if (key[0] !== "idempotency") inner.call(this, key, value);
      }),
    seedsMax: 5,
  },
  {
    name: "the refunded total is forgotten",
    install: accountTx("put", (inner) =>
      function (key, value) {
        if (key[0] !== "refunded") inner.call(this, key, value);
      }),
    seedsMax: 20,
  },
  {
    name: "money moves without an event",
    install: accountTx("emit", (inner) =>
      function (...events) {
        if (!isConcerned(this.account.last ?? "")) inner.apply(this, events);
      }),
    seedsMax: 5,
  },
  {
    name: "an event is written without its row in the outbox",
    install: accountTx("finish", (inner) =>
      function () {
        const write = inner.call(this);
        return isConcerned(this.account.last ?? "") ? lacks(write, "outbox") : write;
      }),
    seedsMax: 5,
  },
  {
    name: "the outbox of dead processes is not swept",
    seams: listing((options, kv) =>
      options.prefix[0] === "outbox" ? Promise.resolve([]) : kv.list(options)
    ),
    seedsMax: 10,
  },
  {
    name: "due deliveries get no ready row",
    seams: writing((write) => lacks(write, "ready")),
    seedsMax: 5,
  },
  {
    name: "a rejected write's increments are counted",
    seams: committing(async (inner, write) => {
      const version = await inner.commit(write);
      if (version === null) write.additions?.forEach((addition) => inner.count(addition));
      return version;
    }),
    seedsMax: 10,
  },
  {
    name: "a process continues the sums of the previous one",
    seams: writing((write) => ({
      ...write,
      sets: write.sets.map(({ key, value }) => ({
        key: key[0] === "sum" ? key.slice(0, 3) : key,
        value,
      })),
    })),
    seedsMax: 5,
  },
  {
    name: "holds of idle accounts are not swept",
    seams: listing((options, kv) =>
      options.prefix[0] === "holding" ? Promise.resolve([]) : kv.list(options)
    ),
    seedsMax: 10,
  },
  {
    name: "a retry may come ten seconds early",
    seams: listing((options, kv) => {
      const { prefix, end } = options;
      if (!end || (prefix[0] !== "due" && prefix[0] !== "ready")) return kv.list(options);
      const early = [...end.slice(0, -1), Number(end.at(-1)) + 10_000];
      return kv.list({ ...options, end: early });
    }),
    seedsMax: 10,
  },
  {
    name: "a result is counted twice",
    seams: committing(countTwice),
    seedsMax: 5,
  },
  {
    name: "a lease excludes no one",
    seams: withoutChecks(is("delivery", "outbox")),
    seedsMax: 40,
  },
  {
    name: "a process's clock runs a minute behind every other second",
    seams: {
      deps: (deps) => ({
        ...deps,
        clock: {
          ...deps.clock,
          now: () => deps.clock.now() - (deps.clock.now() % 2_000 < 1_000 ? 60_000 : 0),
        },
      }),
    },
    seedsMax: 10,
  },
  {
    name: "a write is started that nothing awaits",
    seams: committing((inner, write) => {
      const version = inner.commit(write);
      version.then(() => {});
      return version;
    }),
    seedsMax: 10,
  },
  {
    name: "who spent most is said to have spent more",
    seams: writing((write) => ({
      ...write,
      sets: write.sets.map((set) =>
        set.key[0] === "top_users" ? { ...set, value: more(set.value) } : set
      ),
    })),
    seedsMax: 5,
  },
  ...budgetDefects,
  ...holderDefects,
  ...operatorDefects,
  ...stripeDefects,
  ...forgetDefects,
  ...routeDefects,
  ...keptDefects,
  ...trimDefects,
  ...turnDefects,
  ...alertDefects,
  ...walletDefects,
  ...passkeyDefects,
];

/** Users who spent most, each with one unit more. */
function more(value: Uint8Array): Uint8Array<ArrayBuffer> {
  const users = fromBytes<[string, number, number, string][]>(value);
  return toBytes(users.map(([user, requests, tokens, spent]) => [
    user,
    requests,
    tokens,
    String(BigInt(spent) + 1n),
  ]));
}
