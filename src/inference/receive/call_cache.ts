import type { Amount } from "../../base/money.ts";
import type { ResponseCacheSettings } from "../../projects/response_cache_schema.ts";
import type { Key } from "../../store/kv.ts";
import type { CallTarget } from "../attempt.ts";
import type { CompleteResponse } from "../upstream_response.ts";

/** What a project's cache does for one call. */
export interface CallCache {
  /** Where the response is, or will be kept. */
  key: Key;
  settings: ResponseCacheSettings;
  /** The part of its price that a kept response costs. */
  costFactor: Amount;
  /** The kept response; null where none is. */
  hit: CacheHit | null;
}

/** A response that the cache has kept. */
export interface CacheHit {
  complete: CompleteResponse;
  target: CallTarget;
  /** What it costs now. */
  cost: Amount;
  outputTokens: number;
}
