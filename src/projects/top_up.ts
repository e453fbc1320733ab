import { payableIn, usualTopUp } from "./currency.ts";
import { badRequest } from "../base/errors.ts";
import { formatAmount, fromDecimal } from "../base/money.ts";
import type { Config } from "../config/config.ts";
import type { CreateProject, Project, TopUpSettings } from "./schema.ts";

/** Adds the usual amounts of the currency where none are given. */
export function completeTopUp(given: CreateProject["topUp"], currency: string): TopUpSettings {
  const usual = usualTopUp(currency);
  const { amounts = usual.amounts, min = usual.min, max = usual.max, checkoutUrl } = given;
  return { amounts, min, max, checkoutUrl };
}

/** Whether a project's users pay at Stripe: to its own account, or into wallets of this server. */
export function paysAtStripe(
  { stripe: own }: Pick<Config, "stripe">,
  { stripe, mode }: Pick<Project, "stripe" | "mode">,
): boolean {
  return (mode === "shared" ? own : stripe) !== null;
}

/** Throws 400 for an amount that nobody can pay: finer than the currency, or too small. */
export function requirePayable(
  { currency, topUp: { amounts, min, max } }: Project,
  isStripe: boolean,
): void {
  if (fromDecimal(min) > fromDecimal(max)) {
    throw badRequest("topUp.max", "'topUp.max' must not be less than 'topUp.min'.");
  }
  const { step, minimum } = payableIn(currency, isStripe);
  const code = currency.toUpperCase();
  const fields = [...amounts.map((amount) => ["topUp.amounts", amount]), ["topUp.min", min], [
    "topUp.max",
    max,
  ]] as const;
  for (const [field = "topUp", text = ""] of fields) {
    const amount = fromDecimal(text);
    if (amount % step !== 0n) {
      throw badRequest(
        field,
        `'${field}' contains ${text}, which is finer than ${code} can be paid: the smallest step is ` +
          `${formatAmount(step)}.`,
      );
    }
    if (isStripe && amount < minimum) {
      throw badRequest(
        field,
        `'${field}' contains ${text}, and Stripe takes at least ${formatAmount(minimum)} ${code}.`,
      );
    }
  }
}
