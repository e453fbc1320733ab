import { answerCost, termsOf } from "../../src/chat/pricing.ts";
import { type Defect, draft } from "./defect_seams.ts";

/** Defects in what operators do while everything runs. */
export const operatorDefects: readonly Defect[] = [
  {
    name: "an answer is charged by the prices at its end",
    install: draft("debit", (inner) =>
      function (amount, entry, origin) {
        const terms = entry.usage && termsOf(this.snapshot.project, entry.usage.model);
        if (!entry.usage || !terms) return inner.call(this, amount, entry, origin);
        const { uncachedInputTokens, outputTokens, source } = entry.usage;
        const tokens = { uncachedInput: uncachedInputTokens, output: outputTokens };
        const usage = { ...tokens, cachedInput: 0, cacheWrite: 0, reasoning: 0, source };
        const cost = answerCost(terms.price, usage, outputTokens > 0);
        return inner.call(this, cost, entry, origin);
      }),
    seedsMax: 10,
  },
];
