import { keyText } from "../../src/store/batch.ts";
import type { Row } from "../../src/store/kv.ts";
import { type Defect, is } from "./defect_seams.ts";

interface Seen {
  row: Row;
  /** Its value at the version before. */
  before: Uint8Array | null;
}

/** Defects of the turns of processes on an account. */
export const turnDefects: readonly Defect[] = [
  {
    name: "a turn begins with an account as it was before",
    seams: {
      kv(kv) {
        const accounts = new Map<string, Seen>();
        const note = (row: Row): Uint8Array | null => {
          const name = keyText(row.key);
          const known = accounts.get(name);
          if (known?.row.version === row.version) return known.before;
          const before = known?.row.value ?? null;
          accounts.set(name, { row, before });
          return before;
        };
        return {
          ...kv,
          async getMany(keys) {
            const rows = await kv.getMany(keys);
            const isTurn = keys.some(is("row_turn"));
            return rows.map((row) => {
              const before = is("account")(row.key) ? note(row) : null;
              return isTurn && before ? { ...row, value: before } : row;
            });
          },
        };
      },
    },
    seedsMax: 20,
  },
];
