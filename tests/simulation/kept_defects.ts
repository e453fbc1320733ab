import { fromBytes, toBytes } from "../../src/base/json.ts";
import type { KeptRow } from "../../src/inference/kept/kept_responses.ts";
import type { Write } from "../../src/store/kv.ts";
import { type Defect, lacks, writing } from "./defect_seams.ts";

/** The write, with its kept responses under the name of this user. */
function keptFor(write: Write, user: string): Write {
  const sets = write.sets.map(({ key, value }) => {
    if (key[0] !== "kept_id") return { key, value };
    return { key, value: toBytes({ ...fromBytes<KeptRow>(value), user }) };
  });
  return { ...write, sets };
}

/** Defects in whose the ids of responses are. */
export const keptDefects: readonly Defect[] = [
  {
    name: "ids of responses are not remembered",
    seams: writing((write) => lacks(write, "kept_id")),
    seedsMax: 10,
  },
  {
    name: "ids of responses are remembered for another user",
    seams: writing((write) => keptFor(write, "user-0-1")),
    seedsMax: 10,
  },
];
