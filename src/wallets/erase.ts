import { z } from "zod";
import { type ApiError, badRequest } from "../base/errors.ts";
import type { Json } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import { decodeAccount } from "../ledger/account.ts";
import {
  type Authorization,
  encodeAuthorization,
  readAuthorization,
} from "../ledger/authorization.ts";
import type { AccountQueue } from "../ledger/account_queue.ts";
import { holdsMoney } from "../ledger/hold_sweep.ts";
import { eraseEntryChain } from "../ledger/erase_entries.ts";
import type { ProjectCache } from "../projects/project_cache.ts";
import type { ErasedPage, Eraser, Erasure } from "../store/erase.ts";
import {
  accountKey,
  allConnectionsPrefix,
  authorizationKey,
  connectionKey,
} from "../store/keys.ts";
import { emptyWrite, type Row } from "../store/kv.ts";
import { listAfter, readPlace, type ScanBudget } from "../store/scan.ts";
import { eraseWays } from "./erase_ways.ts";
import { markConnection } from "./store.ts";

interface Services {
  deps: Pick<Deps, "kv" | "committer" | "clock" | "holders">;
  projectCache: ProjectCache;
  queue: AccountQueue;
}

const rowsPerRead = 200;
/**
 * The last connection that was erased, and within the next one's wallet the entry to continue with.
 */
const placeSchema = z.strictObject({
  after: z.tuple([z.string(), z.string(), z.string()]).nullable(),
  entry: z.string().max(64).nullable(),
});
type ErasePlace = z.output<typeof placeSchema>;

/**
 * Erases a user from the wallets that paid for them: entries, connections and the last decision get
 * the pseudonym, so that what was spent can still be found and refunded. The authorization must end
 * before, and none can be given during the erasure.
 */
export function createConnectionEraser({ deps, projectCache, queue }: Services): Eraser {
  const { kv, committer } = deps;
  const walletOf = async (projectId: string, personId: string) =>
    accountKey(personId, (await projectCache.current(projectId)).project.currency);

  /**
   * Erases from the wallet of one connection, from an entry on. Returns the entry to continue with,
   * or null.
   */
  async function eraseWallet(row: Row, erasure: Erasure, { place, budget }: Step) {
    const { projectId, user } = erasure;
    const owner = String(row.key[1]);
    const from = place.entry ??
      decodeAccount((await kv.get(await walletOf(projectId, owner))).value).last;
    const chain = {
      owner,
      from,
      isTheirs: (entry: { projectId?: string; user: string }) =>
        entry.projectId === projectId && entry.user === user,
    };
    return await eraseEntryChain(deps, { chain, erasure, budget });
  }

  /** Renames the connection, or the decision; false when it was changed in between. */
  async function rename({ projectId, user, pseudonym }: Erasure, connection: Row | null) {
    const found = await readAuthorization(kv, projectId, user);
    const key = authorizationKey(projectId, user);
    const write = emptyWrite();
    write.checks.push({ key, version: found?.version ?? null });
    write.deletes.push(connection?.key ?? key);
    if (connection) {
      const owner = String(connection.key[1]);
      markConnection(write, connectionKey(owner, projectId, pseudonym));
    } else if (found && hasPayer(found.authorization)) {
      // The authorization request was made for the user by name.
      const value = encodeAuthorization({ ...found.authorization, requestId: null });
      write.sets.push({ key: authorizationKey(projectId, pseudonym), value });
    }
    return (await committer.commit(write)) !== null;
  }

  async function page(
    erasure: Erasure,
    given: Json | null,
    budget: ScanBudget,
  ): Promise<ErasedPage> {
    const place: ErasePlace = given === null
      ? { after: null, entry: null }
      : readPlace(placeSchema, given);
    let erased = 0;
    do {
      const after = place.after && connectionKey(...place.after);
      const rows = await listAfter(kv, allConnectionsPrefix, { after, limit: rowsPerRead });
      budget.spend(rows.length + 1);
      const row = rows.find(({ key }) => key[2] === erasure.projectId && key[3] === erasure.user);
      if (row) {
        const done = await eraseWallet(row, erasure, { place, budget });
        erased += done.erased;
        place.entry = done.next === null ? null : String(done.next);
        if (done.next !== null) break;
        if (!(await rename(erasure, row))) break;
        await eraseWays(deps, String(row.key[1]));
      }
      const last = row ?? rows.at(-1);
      if (last) place.after = [String(last.key[1]), String(last.key[2]), String(last.key[3])];
      if (!row && rows.length < rowsPerRead) {
        if (!(await rename(erasure, null))) break;
        return { erased, next: null };
      }
    } while (!budget.isUsedUp);
    return { erased, next: { ...place } };
  }

  async function refusal({ projectId, user }: Erasure): Promise<ApiError | null> {
    const found = await readAuthorization(kv, projectId, user);
    // The move of the account itself refuses a user with an active authorization.
    if (!found || found.authorization.status === "active") return null;
    // In any wallet: another person may have paid before.
    if (!(await holdsMoney({ kv, queue }, { projectId, user }))) return null;
    return badRequest(null, "Money is held for calls that are still running.", "money_held");
  }

  return { name: "walletEntries", page, refusal };
}

/** Whether a person's wallet pays, or ever paid. */
function hasPayer({ personId, former = [] }: Authorization): boolean {
  return personId !== "" || former.length > 0;
}

interface Step {
  place: ErasePlace;
  budget: ScanBudget;
}
