import type { AccountTx } from "../../ledger/account_tx.ts";
import type { TokenUsage } from "../../pricing/usage.ts";
import { leastTokensNow } from "../admit/prompt_size.ts";
import type { AdmittedCall } from "../call.ts";
import type { KeptIds } from "../upstream_response.ts";
import { rememberResponse, type RequestTurn } from "../kept/kept_responses.ts";
import type { InferenceServices } from "../services.ts";

/**
 * Remembers the ids that the user may refer to later. Returns how many bytes are stored of a turn.
 */
export function keepResponse(
  services: Pick<InferenceServices, "texts">,
  tx: AccountTx,
  { call, kept, usage }: { call: AdmittedCall; kept: KeptIds | null; usage: TokenUsage },
): number {
  if (!kept || call.cache?.hit) return 0;
  const { ref, isRouted, attempt: { target: { upstream: { name } } } } = call;
  const upstream = isRouted ? name : null;
  return rememberResponse(services, tx, { ref, kept, usage, upstream, turn: turnOf(call) });
}

/** The request's part of a turn that the upstream does not keep; null where it keeps it. */
function turnOf(
  { attempt: { isBridged }, format, input, previousResponse, history }: AdmittedCall,
): RequestTurn | null {
  if (!isBridged || !format.kept) return null;
  return {
    previous: previousResponse,
    input: format.kept.inputItems(input).slice(history?.items ?? 0),
    history,
    leastTokens: (items) =>
      leastTokensNow(format.promptTexts({ ...input, body: { input: [...items] } })),
  };
}
