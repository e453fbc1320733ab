import type { Deps } from "../deps.ts";
import type { MoneyRecorder } from "../ledger/record.ts";
import type { EmitEvents } from "../projects/commit_with_events.ts";
import type { ProjectCache } from "../projects/project_cache.ts";
import type { Secrets } from "../store/secrets.ts";

/** What Stripe checkouts and Stripe's webhooks work with. */
export interface PaymentDeps {
  deps: Deps;
  projectCache: ProjectCache;
  recorder: MoneyRecorder;
  secrets: Secrets;
  emit: EmitEvents;
}
