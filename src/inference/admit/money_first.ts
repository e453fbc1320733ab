import type { AccountRef } from "../../ledger/account.ts";
import { budgetsOfKey } from "../../projects/key_budget.ts";
import type { HoldResult } from "../../ledger/hold.ts";
import type { InferenceCall } from "../call.ts";
import type { CallTarget } from "../attempt.ts";
import type { FoundCall } from "./complete_call.ts";
import type { TurnsToLoad } from "../kept/kept_turns.ts";
import { pricedCall } from "./priced_call.ts";
import { type CallQuote, quoteCall, quoteTarget } from "./quote.ts";
import type { InferenceServices } from "../services.ts";

/** The size of a body, in bytes, below which its content never takes long to read. */
const quickBytes = 1024;

/** Whether bounding what a call can cost takes much longer than reading its body did. */
export function takesLong({ call: { format, input }, turns }: FoundCall): boolean {
  if (turns || input.measure) return true;
  if (input.bytes < quickBytes) return false;
  for (const _ of format.mediaParts(input)) return true;
  return false;
}

/**
 * Looks at the account before work that takes long, and writes nothing. Returns `count` where the
 * user may go on, because they can pay for the least that the response can cost. Anything else
 * refuses the call, as its hold would. Throws 429 `concurrency_limit`.
 */
export async function lookAtMoney(
  { holds, deps: { kv } }: Pick<InferenceServices, "holds" | "deps">,
  { id, ref, caller: { key, snapshot }, targets }: InferenceCall & { ref: AccountRef },
  turns: TurnsToLoad | null,
): Promise<Exclude<HoldResult<CallQuote>, { kind: "held" }>> {
  // No prompt is empty.
  const tokens = Math.max(1, turns?.size?.tokens ?? 0);
  const quote = quoteCall(targets.map((target) => quoteLeast(target, tokens)));
  const looked = await holds.place<CallQuote>({
    ref,
    id,
    snapshot,
    events: [],
    budgets: budgetsOfKey(kv, snapshot.project.id, key),
    quote: (funds) => quote(funds) && { countTo: 0 },
  });
  if (looked.kind === "held") throw new Error("a look holds nothing");
  return looked;
}

/** A quote for a prompt of the fewest tokens, without costs that only its content can cause. */
function quoteLeast({ input, terms, reasoning }: CallTarget, tokens: number) {
  const request = { ...input, extras: { ...input.extras, hostedTools: [], maxToolCalls: 0 } };
  const priced = { ...pricedCall(request, terms, { hasMedia: false }), toolCalls: 0 };
  const prompt = { bound: tokens, counted: tokens, atLeast: tokens };
  return quoteTarget(input, terms, { priced, prompt, reasons: reasoning.isKnown() });
}
