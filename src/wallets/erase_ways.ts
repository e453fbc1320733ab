import type { Deps } from "../deps.ts";
import { isPseudonym } from "../ledger/pseudonym.ts";
import { connectionsPrefix } from "../store/keys.ts";
import { emptyWrite } from "../store/kv.ts";
import { pagesUnder } from "../store/scan.ts";
import { readBalances } from "./balances.ts";
import { deviceKeys, listDevices } from "./device_rows.ts";
import { emailRemoval, listEmails } from "./email_rows.ts";
import { listPasskeys, passkeyRemoval, readPasskey } from "./store.ts";

const rowsPerRead = 100;

/**
 * Removes a wallet's devices, passkeys and e-mail addresses, once everyone for whom it paid has
 * been erased and nothing is left in it: nobody can need them any more.
 */
export async function eraseWays(
  deps: Pick<Deps, "kv" | "clock" | "committer" | "holders">,
  personId: string,
): Promise<void> {
  const { kv, committer } = deps;
  for await (const rows of pagesUnder(kv, connectionsPrefix(personId), rowsPerRead)) {
    if (rows.some(({ key }) => !isPseudonym(String(key[3])))) return;
  }
  const balances = await readBalances(deps, personId);
  if (balances.some(({ balance }) => balance > 0n)) return;
  for (const { id } of await listPasskeys(kv, personId)) {
    const version = (await readPasskey(kv, id))?.version ?? null;
    await committer.commit(passkeyRemoval(id, personId, version));
  }
  for (const { hash } of await listEmails(kv, personId)) {
    await committer.commit(emailRemoval(personId, hash));
  }
  for (let left = rowsPerRead; left === rowsPerRead;) {
    const devices = await listDevices(kv, personId, rowsPerRead);
    for (const { hash, device } of devices) {
      await committer.commit({ ...emptyWrite(), deletes: deviceKeys(hash, device) });
    }
    left = devices.length;
  }
}
