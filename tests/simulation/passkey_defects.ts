import { fromBytes, toBytes } from "../../src/base/json.ts";
import type { Passkey } from "../../src/wallets/store.ts";
import { type Defect, is, lacks, reading, withoutChecks, writing } from "./defect_seams.ts";

/** Defects in how people return to their wallets. */
export const passkeyDefects: readonly Defect[] = [
  {
    name: "a passkey response counts as often as it is sent",
    seams: reading((row) => {
      if (row.key[0] !== "passkey" || !row.value) return row;
      return { ...row, value: toBytes({ ...fromBytes<Passkey>(row.value), answered: [] }) };
    }),
    seedsMax: 60,
  },
  {
    name: "a passkey's use is written on a row that may be stale",
    seams: withoutChecks(is("passkey")),
    seedsMax: 60,
  },
  {
    name: "a person's passkeys are not listed",
    seams: writing((write) => lacks(write, "person_passkey")),
    seedsMax: 100,
  },
  {
    name: "a passkey that its person removed still opens their wallet",
    seams: writing((write) => ({
      ...write,
      deletes: write.deletes.filter((key) => !is("passkey", "person_passkey")(key)),
    })),
    seedsMax: 200,
  },
  {
    name: "a lost device is still known when the others were signed out",
    seams: reading((row) => row.key[0] === "device_epoch" ? { ...row, value: null } : row),
    seedsMax: 60,
  },
  {
    name: "a device that signs the others out is signed out with them",
    seams: reading((row) => {
      if (row.key[0] !== "device_epoch" || !row.value) return row;
      const epoch = fromBytes<Record<string, unknown>>(row.value);
      return { ...row, value: toBytes({ ...epoch, kept: null }) };
    }),
    seedsMax: 60,
  },
  {
    name: "a registered passkey is not stored",
    seams: writing((write) => lacks(lacks(write, "passkey"), "person_passkey")),
    seedsMax: 100,
  },
];
