import { emptyWrite, type Key, type Kv, type Row, type Write } from "./kv.ts";
import type { Committer } from "./commit.ts";
import { listAfter, readPlace, type ScanBudget } from "./scan.ts";
import { z } from "zod";
import type { ApiError } from "../base/errors.ts";
import { isId } from "../base/ids.ts";
import type { Json } from "../base/json.ts";

/** A user to erase, and the name that replaces them. */
export interface Erasure {
  projectId: string;
  user: string;
  /** Random: it cannot be derived from the user. */
  pseudonym: string;
  /** An event id: from it on, the user's name stands for someone new. */
  until: string;
}

/** The result of one page of an eraser. */
export interface ErasedPage {
  /** How many records named the user, and no longer do. */
  erased: number;
  /** The place to continue from; null at the end, or when the eraser waits at the start. */
  next: Json | null;
  /**
   * Whether the eraser waits for something under way that names the user: try again later, from the
   * same place.
   */
  waiting?: boolean;
}

/**
 * Erases a user from one kind of records, however many, a bounded page at each call. A page that
 * runs twice, or in two processes at once, has the same result.
 */
export interface Eraser {
  /** The kind of records that are erased, in the plural. */
  name: string;
  /** Returns why the user cannot be erased now, as a 400; null when nothing prevents it. */
  refusal?(erasure: Erasure): Promise<ApiError | null>;
  /** Erases from `place` on; null is the start. */
  page(erasure: Erasure, place: Json | null, budget: ScanBudget): Promise<ErasedPage>;
}

interface RowEraser {
  name: string;
  kv: Kv;
  committer: Committer;
  prefix(erasure: Erasure): Key;
  /** Returns the rows that replace a row; null for a row that does not name the user. */
  rewrite(row: Row, erasure: Erasure): Pick<Write, "sets" | "deletes"> | null;
}

const rowsPerRead = 100;
const keyPlace = z.array(z.union([z.string(), z.number()])).min(1).max(4);

/** Creates an eraser of all rows under one prefix, each on its own. */
export function eraseRows({ name, kv, committer, prefix, rewrite }: RowEraser): Eraser {
  return {
    name,
    async page(erasure, place, budget) {
      const under = prefix(erasure);
      let after = place === null ? null : [...under, ...readPlace(keyPlace, place)];
      let erased = 0;
      do {
        const rows = await listAfter(kv, under, { after, limit: rowsPerRead });
        budget.spend(rows.length + 1);
        const changes = rows.flatMap((row) => {
          const change = rewrite(row, erasure);
          return change ? [{ row, change }] : [];
        });
        const landed = await Promise.all(
          changes.map(({ row, change }) => commitUnlessMoved(committer, row, change)),
        );
        erased += landed.filter(Boolean).length;
        // A row that changed in between is read again, with its page.
        if (landed.includes(false)) {
          return { erased, next: after?.slice(under.length) ?? null, waiting: true };
        }
        const last = rows.at(-1);
        if (!last || rows.length < rowsPerRead) return { erased, next: null };
        after = [...last.key];
      } while (!budget.isUsedUp);
      return { erased, next: after.slice(under.length) };
    },
  };
}

/**
 * The id of a request under which an erased user's records keep it: ours. A caller's own id, which
 * may name the user, is replaced.
 */
export function requestIdAfterErasure(requestId: string, own: string): string {
  return isId("req", requestId) ? requestId : own;
}

/** Writes a row's replacement, if the row is still as it was read. */
export async function commitUnlessMoved(
  committer: Committer,
  { key, version }: Pick<Row, "key" | "version">,
  change: Pick<Write, "sets" | "deletes">,
): Promise<boolean> {
  const write: Write = { ...emptyWrite(), ...change, checks: [{ key, version }] };
  return (await committer.commit(write)) !== null;
}
