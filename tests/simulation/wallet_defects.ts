import { availableIn } from "../../src/ledger/account.ts";
import {
  type Authorization,
  decodeAuthorization,
  encodeAuthorization,
} from "../../src/ledger/authorization.ts";
import type { Seams } from "./process.ts";
import { accountTx, available, type Defect, is, reading, withoutChecks } from "./defect_seams.ts";

/** Changes every authorization that is read. */
function readAs(wrong: Partial<Authorization>): Seams {
  return reading((row) => {
    if (row.key[0] !== "authorization" || !row.value) return row;
    const authorization = decodeAuthorization(row.value);
    return { ...row, value: encodeAuthorization({ ...authorization, ...wrong }) };
  });
}

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
    install: available(function () {
      return availableIn(this.account);
    }),
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
];
