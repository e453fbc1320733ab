import { decodeUtf8 } from "../../src/base/utf8.ts";
import { pseudonymStart } from "../../src/ledger/pseudonym.ts";
import { decodeAccount } from "../../src/ledger/account.ts";
import { type Defect, isConcerned, listing, writing } from "./defect_seams.ts";

/** Defects in the erasure of users. */
export const forgetDefects: readonly Defect[] = [
  {
    name: "an erasure in progress is not continued",
    seams: listing((options, kv) =>
      options.prefix[0] === "forget_job" ? Promise.resolve([]) : kv.list(options)
    ),
    seedsMax: 60,
  },
  {
    name: "some entries still name an erased user",
    seams: writing((write) => {
      if (write.sets.some(({ key }) => key[0] === "account")) return write;
      const kept = write.sets.filter(({ key }) => key[0] !== "entry" || !isConcerned(`${key[2]}`));
      return { ...write, sets: kept };
    }),
    seedsMax: 40,
  },
  {
    name: "events still name an erased user",
    seams: neverWrittenAgain("event", { madeWith: "outbox" }),
    seedsMax: 40,
  },
  {
    name: "payments still name an erased user",
    seams: neverWrittenAgain("stripe_payment", { madeWith: "entry" }),
    seedsMax: 80,
  },
  {
    name: "a project's own limits still name an erased user",
    seams: writing((write) => {
      if (write.sets.some(({ key }) => key[0] === "audit" || key[0] === "key")) return write;
      return { ...write, sets: write.sets.filter(({ key }) => key[0] !== "project") };
    }),
    seedsMax: 40,
  },
  {
    name: "top users of an hour still name an erased user",
    seams: writing((write) => ({
      ...write,
      sets: write.sets.filter(({ key, value }) =>
        key[0] !== "top_users" || !decodeUtf8(value)?.includes(pseudonymStart)
      ),
    })),
    seedsMax: 150,
  },
  {
    name: "an erased user keeps the old account as well",
    seams: writing((write) => ({
      ...write,
      sets: write.sets.filter(({ key, value }) =>
        key[0] !== "account" || !decodeAccount(value).closed
      ),
    })),
    seedsMax: 40,
  },
];

/** Rows of that kind stay unchanged. */
function neverWrittenAgain(kind: string, { madeWith }: { madeWith: string }) {
  return writing((write) => {
    if (write.sets.some(({ key }) => key[0] === madeWith)) return write;
    return { ...write, sets: write.sets.filter(({ key }) => key[0] !== kind) };
  });
}
