import {
  type Authorization,
  decodeAuthorization,
  encodeAuthorization,
} from "../../src/ledger/authorization.ts";
import { fromBytes } from "../../src/base/json.ts";
import type { Entry } from "../../src/ledger/entry.ts";
import type { Write } from "../../src/store/kv.ts";
import type { Seams } from "./process.ts";
import {
  accountTx,
  bounds,
  type Defect,
  is,
  reading,
  withoutChecks,
  writing,
} from "./defect_seams.ts";

/** Changes every authorization that is read. */
function readAs(wrong: Partial<Authorization>): Seams {
  return reading((row) => {
    if (row.key[0] !== "authorization" || !row.value) return row;
    const authorization = decodeAuthorization(row.value);
    return { ...row, value: encodeAuthorization({ ...authorization, ...wrong }) };
  });
}

const staleMs = 3_000;

/** Defects in authorizations, and in what wallets are charged. */
export const walletDefects: readonly Defect[] = [
  {
    name: "what is taken from a wallet is not counted",
    install: accountTx("put", (inner) =>
      function (key, value) {
        if (key[0] !== "authorization") inner.call(this, key, value);
      }),
    seedsMax: 10,
  },
  {
    name: "a wallet's cap applies to each response, not to a day",
    install: bounds((all) => all.filter(({ refusal }) => refusal !== "daily_cap")),
    seedsMax: 80,
  },
  {
    name: "an ended authorization is not refused",
    seams: readAs({ status: "active" }),
    seedsMax: 20,
  },
  {
    name: "a link decides as often as it is submitted",
    seams: readAs({ decidedAt: 0 }),
    seedsMax: 60,
  },
  {
    name: "an authorization is written on a row that may be stale",
    seams: withoutChecks(is("authorization")),
    seedsMax: 200,
  },
  {
    name: "what moves to another wallet also stays where it was",
    seams: writing((write) => {
      const left = transferred(write).find(({ entry }) => entry.delta.startsWith("-"));
      if (!left) return write;
      const stays = ({ key }: Write["sets"][number]) =>
        (key[0] === "account" || key[0] === "entry") && key[1] === left.owner;
      return { ...write, sets: write.sets.filter((set) => !stays(set)) };
    }),
    seedsMax: 200,
  },
  {
    name: "money moves between wallets on accounts that may be stale",
    seams: writing(
      (write) => ({
        ...write,
        checks: write.checks.filter(({ key }) =>
          transferred(write).length === 0 || key[0] !== "account"
        ),
      }),
      // Somebody else writes one of the accounts meanwhile.
      async (write, timeline) => {
        if (transferred(write).length > 0) await timeline.pause(staleMs);
      },
    ),
    seedsMax: 220,
  },
];

/** The entries of a write that move money between wallets. */
function transferred({ sets }: Write): { owner: string; entry: Entry }[] {
  return sets.filter(({ key }) => key[0] === "entry")
    .map(({ key, value }) => ({ owner: String(key[1]), entry: fromBytes<Entry>(value) }))
    .filter(({ entry }) => entry.kind === "transfer");
}
