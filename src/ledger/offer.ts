import type { RefusalReason } from "../base/refusal_reasons.ts";
import type { Trigger } from "../events/event.ts";
import type { Project } from "../projects/schema.ts";

/** Finds the link for a refused user, and the message that contains it. */
export type Offer = (
  project: Project,
  user: string,
  refused: {
    reason: RefusalReason;
    trigger: Trigger;
    amount?: string;
    balance: string;
    languages: string | null;
  },
) => Promise<{ url: string; message: string }>;
