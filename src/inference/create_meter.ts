import { TimeSlice } from "../base/time_slice.ts";
import { pricesOnlyUnits } from "../pricing/price.ts";
import { loadTokenizer } from "../pricing/tokenizer.ts";
import { plausibleUsage } from "../pricing/usage.ts";
import type { PaidTarget } from "./attempt.ts";
import type { AdmittedCall, InferenceDeps } from "./call.ts";
import { countPrompt } from "./prompt_size.ts";
import { UsageMeter } from "./usage_meter.ts";

/** Creates the meter of one attempt. */
export function createMeter(
  { deps: { clock } }: InferenceDeps,
  { format, prompt }: Pick<AdmittedCall, "format" | "prompt">,
  { input, terms, media, quote }: PaidTarget,
): UsageMeter {
  const { made } = format;
  return new UsageMeter({
    hasOutput: !format.isPassedOn || made !== undefined,
    countsTokens: !pricesOnlyUnits(terms.price),
    classes: made,
    choices: input.choices,
    plausible: plausibleUsage(
      prompt.bound + (prompt.unknown ?? 0),
      quote.cap * input.choices,
      format.readsMoreByTools?.(input),
    ),
    async countInput(most = Infinity) {
      const count = await loadTokenizer();
      return await countPrompt(format, input, { media, count, slice: new TimeSlice(clock), most });
    },
    clock,
  });
}
