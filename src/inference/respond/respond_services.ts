import type { AskServices } from "../ask/ask_targets.ts";
import type { FinishServices } from "../finish/finish_call.ts";
import type { InferenceServices } from "../services.ts";

/** What responding to an admitted call needs. */
export type RespondServices =
  & AskServices
  & FinishServices
  & Pick<InferenceServices, "running" | "linkFor" | "responseMemory">;
