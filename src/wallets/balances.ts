import type { Amount } from "../base/money.ts";
import type { Deps } from "../deps.ts";
import { readBalance } from "../ledger/balance.ts";
import { listCurrencies } from "./store.ts";

/** Reads what a person has, in each currency that they have or had money in. */
export async function readBalances(
  deps: Pick<Deps, "kv" | "clock" | "holders">,
  personId: string,
): Promise<{ currency: string; balance: Amount; held: Amount }[]> {
  const currencies = await listCurrencies(deps.kv, personId);
  return await Promise.all(currencies.map(async (currency) => {
    const { balance, held } = await readWalletBalance(deps, { personId, currency });
    return { currency, balance, held };
  }));
}

/** Reads what a person has in one currency. */
export function readWalletBalance(
  deps: Pick<Deps, "kv" | "clock" | "holders">,
  wallet: { personId: string; currency: string },
) {
  const ref = { projectId: "", user: "", wallet: { ...wallet, connectionId: "" } };
  return readBalance(deps, ref);
}
