import { TimeSlice } from "../../base/time_slice.ts";
import { contextWindowDefault } from "../../pricing/media_tokens.ts";
import { pricesOnlyUnits, tokenRate } from "../../pricing/price.ts";
import { loadTokenizer } from "../../pricing/tokenizer.ts";
import { usageBounds } from "../../pricing/usage_bounds.ts";
import type { PaidTarget } from "../attempt.ts";
import type { AdmittedCall } from "../call.ts";
import { countPrompt, hasMedia } from "../admit/prompt_size.ts";
import { UsageMeter } from "./usage_meter.ts";
import type { InferenceServices } from "../services.ts";

/** Creates the meter of one attempt. */
export function createMeter(
  { deps: { clock } }: Pick<InferenceServices, "deps">,
  { format, prompt }: Pick<AdmittedCall, "format" | "prompt">,
  { input, model, terms, media, quote }: PaidTarget,
): UsageMeter {
  const output = quote.cap * input.choices;
  return new UsageMeter({
    countsTokens: !pricesOnlyUnits(terms.price),
    classes: format.kind === "passed" ? format.classes : undefined,
    model,
    pricesImages: terms.price.table.standard.base.rates.imageOutput !== undefined,
    choices: input.choices,
    bounds: usageBounds({
      prompt: prompt.bound + (prompt.unknown ?? 0),
      output,
      contextWindow: hasMedia(media) ? terms.contextWindow ?? contextWindowDefault : 0,
      readsMoreByTools: format.tools?.readMore(input) ?? false,
      ...(input.fileMost ? { file: input.fileMost } : {}),
    }),
    heldOutput: output,
    rateOf: (name, counts) => tokenRate(terms.price, name, counts),
    async countInput(most = Infinity) {
      const count = await loadTokenizer();
      return await countPrompt(format, input, { media, count, slice: new TimeSlice(clock), most });
    },
    clock,
  });
}
