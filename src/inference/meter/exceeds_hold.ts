import { inputTokensOf } from "../../base/token_classes.ts";
import { affordableOutput } from "../../pricing/price.ts";
import type { AdmittedCall } from "../call.ts";

/** Whether output may have used up the hold: compares lengths only, and is mostly false. */
export function mayExceedHold({ attempt, input, cache }: AdmittedCall): boolean {
  const { meter, target: { quote } } = attempt;
  return !cache?.hit && !meter.surelyWithin(quote.cap * input.choices);
}

/** Whether our own count says that the output has used up the hold. */
export async function exceedsHold({ attempt, held }: AdmittedCall): Promise<boolean> {
  const { meter, target } = attempt;
  const input = inputTokensOf(await meter.usage());
  const output = await meter.countOutput();
  return output >= affordableOutput(target.priced, { spendable: held, input, choices: 1 });
}
