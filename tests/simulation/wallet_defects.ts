import { availableIn } from "../../src/ledger/account.ts";
import { decodeAuthorization, encodeAuthorization } from "../../src/ledger/authorization.ts";
import type { Row } from "../../src/store/kv.ts";
import { available, type Defect, draft, is, withoutChecks } from "./defect_seams.ts";

/** A leave as if it had never ended. */
function unended(row: Row): Row {
  if (row.key[0] !== "authorization" || !row.value) return row;
  const authorization = decodeAuthorization(row.value);
  return { ...row, value: encodeAuthorization({ ...authorization, status: "active" }) };
}

/** Defects in what people allow, and what is taken of their wallets. */
export const walletDefects: readonly Defect[] = [
  {
    name: "what is taken of a wallet is not counted",
    install: draft("put", (inner) =>
      function (key, value) {
        if (key[0] !== "authorization") inner.call(this, key, value);
      }),
    seedsMax: 10,
  },
  {
    name: "a wallet's cap is for each answer, not for a day",
    install: available(function () {
      return availableIn(this.account);
    }),
    seedsMax: 20,
  },
  {
    name: "whether leave to spend has ended is not looked at",
    seams: {
      kv: (kv) => ({
        ...kv,
        get: (key) => kv.get(key).then(unended),
        getMany: (keys) => kv.getMany(keys).then((rows) => rows.map(unended)),
      }),
    },
    seedsMax: 20,
  },
  {
    name: "a person's leave is written on one that may be stale",
    seams: withoutChecks(is("authorization")),
    seedsMax: 60,
  },
];
