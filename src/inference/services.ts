import type { MemoryBudget } from "../base/memory_budget.ts";
import type { PlaceLimiter } from "../base/place_limiter.ts";
import type { Deps } from "../deps.ts";
import type { Holds } from "../ledger/hold.ts";
import type { Conversion } from "../paywall/conversion.ts";
import type { Offers } from "../paywall/offer.ts";
import type { Prices } from "../pricing/terms.ts";
import type { Auth } from "../projects/auth.ts";
import type { RequestLog } from "../requests/request_log.ts";
import type { KeptTexts } from "../store/kept_texts.ts";
import type { RefusedModels } from "../summaries/refused_models.ts";
import type { ReasoningModels } from "../upstreams/reasoning.ts";
import type { TargetHealth } from "../upstreams/target_health.ts";
import type { FindTargets, FindUpstreamNamed } from "../upstreams/upstream.ts";
import type { CountingBudget, CountingQueue, UnpaidCounting } from "./admit/prompt_counting.ts";
import type { RateLimiter } from "./admit/rate_limiter.ts";
import type { RefusalReports } from "./admit/refusal_reports.ts";
import type { AnsweredConversations } from "./kept/conversations.ts";
import type { KeptQuota } from "./kept/kept_quota.ts";
import type { RunningCalls } from "./running.ts";

/** What the pipeline depends on. */
export interface InferenceServices {
  deps: Deps;
  auth: Auth;
  holds: Holds;
  running: RunningCalls;
  findTargets: FindTargets;
  findUpstreamNamed: FindUpstreamNamed;
  targetHealth: TargetHealth;
  conversations: AnsweredConversations;
  prices: Prices;
  reasoningModels: ReasoningModels;
  refusalReports: RefusalReports;
  refusedModels: RefusedModels;
  requestLog: RequestLog;
  conversion: Pick<Conversion, "saw">;
  rateLimiter: RateLimiter;
  places: PlaceLimiter;
  countOneByOne: CountingQueue;
  /** The memory for responses. */
  responseMemory: MemoryBudget;
  countingBudget: CountingBudget;
  unpaidCounting: UnpaidCounting;
  keptQuota: KeptQuota;
  texts: KeptTexts;
  /** Requests that wait for the response under their idempotency key: how many, by the key. */
  waiters: Map<string, number>;
  /** Returns the link that a refused user gets, and its events. */
  linkFor: Offers["linkFor"];
}
