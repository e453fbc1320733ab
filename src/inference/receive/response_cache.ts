import { createHash } from "node:crypto";
import { canonicalJson, type JsonObject, plainNumber } from "../../base/json.ts";
import { responseCacheBytesMax, responseCacheRequestBytesMax } from "../../base/limits.ts";
import { fromDecimal, toAmount } from "../../base/money.ts";
import { outputTokensOf } from "../../base/token_classes.ts";
import { encodeUtf8 } from "../../base/utf8.ts";
import type { Deps } from "../../deps.ts";
import type { AccountTx } from "../../ledger/account_tx.ts";
import type { TokenUsage } from "../../pricing/usage.ts";
import { unbounded } from "../../pricing/usage_bounds.ts";
import type { ResponseCacheSettings } from "../../projects/response_cache_schema.ts";
import { type Eraser, eraseRows } from "../../store/erase.ts";
import { type ExpiringKind, keysWithExpiry, withExpiry } from "../../store/expiry.ts";
import { keptHead } from "../../store/kept_texts.ts";
import {
  allCachedResponsesPrefix,
  cachedResponseKey,
  cachedResponsesPrefix,
} from "../../store/keys.ts";
import type { AdmittedCall, InferenceCall } from "../call.ts";
import { billOf } from "../meter/bill.ts";
import { responseHead } from "../response_head.ts";
import type { InferenceServices } from "../services.ts";
import type { CallTarget } from "../attempt.ts";
import type { TextFormat } from "../format.ts";
import type { CacheHit, CallCache } from "./call_cache.ts";
import type { CompleteResponse } from "../upstream_response.ts";
import { noteComplete } from "../meter/note_complete.ts";
import { UsageMeter } from "../meter/usage_meter.ts";

/** The head of a stored row; the response follows it as JSON text. */
interface KeptHead {
  user: string;
  /** In milliseconds since 1970. */
  keptAt: number;
  expiresAt: number;
  /** Who gave it: the name of an upstream, and the model there. */
  upstream: string;
  model: string;
}

/** The responses that the caches of projects keep. */
export const cachedResponseRows: ExpiringKind = {
  prefix: allCachedResponsesPrefix,
  endsAt: (value) => keptHead<KeptHead>(value).expiresAt,
};

/** Fields that do not change what a response says. */
const unrelatedFields: readonly string[] = [
  ...["user", "safety_identifier", "stream", "stream_options", "prompt_cache_key"],
  ...["prompt_cache_retention", "metadata", "store", "service_tier"],
];
/** What looking for a kept response needs. */
type CacheServices = Pick<InferenceServices, "deps" | "texts" | "prices">;

const askHeader = "x-service-cache";

/**
 * The call with what its project's cache does for it: a kept response, or where the response will
 * be kept. Unchanged where the request is none for the cache.
 */
export async function withCache(
  services: CacheServices,
  call: InferenceCall,
): Promise<InferenceCall> {
  const { responseCache: settings, id: projectId } = call.caller.snapshot.project;
  const { format } = call;
  if (!settings.enabled || format.kind !== "text" || !isCacheable(call, settings)) return call;
  const { kv, metrics, clock } = services.deps;
  const whose = settings.scope === "user" ? hashOf(call.user) : "all";
  const key = cachedResponseKey(projectId, whose, hashOf(canonicalText(call)));
  const costFactor = fromDecimal(settings.costFactor);
  const cache: CallCache = { key, settings, costFactor, hit: null };
  const { value } = isFresh(call) ? { value: null } : await kv.get(key);
  const head = value && keptHead<KeptHead>(value);
  const isOld = head && head.keptAt + settings.maxAgeSeconds * 1000 <= clock.now();
  const text = value && !isOld ? services.texts.textOf(key, value) : null;
  const kept = head && text !== null ? { head, body: encodeUtf8(text) } : null;
  const hit = kept && await readHit(services, { ...call, format, cache }, kept);
  metrics.cacheLookups[hit ? "hit" : "miss"].add();
  if (!hit) return { ...call, cache };
  return { ...call, cache: { ...cache, hit }, targets: [hit.target], isRouted: false };
}

/** Whether a repeated request may get the same response. */
function isCacheable(
  { format, input, request, previousResponse, hiddenTokens }: InferenceCall,
  { maxTemperature }: ResponseCacheSettings,
): boolean {
  const { body, extras, bytes } = input;
  const asked = request.headers.get(askHeader)?.toLowerCase();
  if (asked === "off" || bytes > responseCacheRequestBytesMax) return false;
  if (/\bno-store\b/i.test(request.headers.get("cache-control") ?? "")) return false;
  const hasTools = extras.hostedTools.length > 0 || hasAny(body, "tools") ||
    hasAny(body, "functions") || hasAny(body, "mcp_servers") || body.web_search_options != null;
  const refers = previousResponse !== null || hiddenTokens > 0 ||
    (format.kept?.references(input).length ?? 0) > 0;
  if (hasTools || refers || extras.modalities?.includes("audio")) return false;
  const { temperature = null } = body;
  return asked === "on" || temperature === null || plainNumber(temperature) <= maxTemperature;
}

/** Whether the caller asks for a new response, which is then kept. */
function isFresh({ request }: InferenceCall): boolean {
  return /\bno-cache\b/i.test(request.headers.get("cache-control") ?? "");
}

function hasAny(body: JsonObject, field: string): boolean {
  const value = body[field] ?? null;
  return Array.isArray(value) ? value.length > 0 : value !== null;
}

function canonicalText({ format, input, request }: InferenceCall): string {
  const fields = Object.entries(input.body).filter(([name]) => !unrelatedFields.includes(name));
  const headers = format.passedHeaders.map((name) => request.headers.get(name));
  return canonicalJson([format.name, headers, Object.fromEntries(fields)]);
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}

/** A kept response, priced as it is now; null where it cannot be read any more. */
async function readHit(
  services: CacheServices,
  call: InferenceCall & { format: TextFormat },
  { head, body }: { head: KeptHead; body: Uint8Array },
): Promise<CacheHit | null> {
  const { format, targets: [first] } = call;
  const isSame = ({ upstream: { name }, model }: CallTarget) =>
    name === head.upstream && model === head.model;
  const target = call.targets.find(isSame) ?? first;
  if (!target) return null;
  try {
    const options = { request: target.input, head: responseHead(call), apiKey: null };
    const complete = format.readResponse(body, options);
    if (!complete.isAnswer()) return null;
    const meter = meterOf(services.deps);
    noteComplete(meter, complete);
    const usage = await meter.usage();
    const hit: CacheHit = {
      complete,
      target,
      cost: anyAmount,
      outputTokens: outputTokensOf(usage),
    };
    const cache = call.cache && { ...call.cache, hit };
    const billed = { ...call, cache, attempt: { meter, target }, held: anyAmount };
    return { ...hit, cost: billOf(services, billed, usage).cost };
  } catch (error) {
    services.deps.log("warn", "cached_response_unreadable", { error: String(error) });
    return null;
  }
}

/** More than any response costs: a stated cost is believed. */
const anyAmount = toAmount(10n ** 30n);

function meterOf({ clock }: Pick<Deps, "clock">): UsageMeter {
  return new UsageMeter({
    choices: 1,
    bounds: unbounded,
    heldOutput: 0,
    rateOf: () => 0n,
    countInput: () => Promise.resolve(0),
    clock,
  });
}

/**
 * Keeps the response of a call with its charge, where it is an answer, whole and not too large.
 * What was blocked, refused or cut is asked for again.
 */
export function keepInCache(
  { texts }: Pick<InferenceServices, "texts">,
  tx: AccountTx,
  { call, usage, response }: {
    call: AdmittedCall;
    usage: TokenUsage;
    /** Null where it is not one to keep. */
    response: CompleteResponse | null;
  },
): void {
  const { cache, attempt: { meter, target }, input, user } = call;
  if (!cache || !response || cache.hit) return;
  const { reported } = meter;
  if (usage.source !== "provider" || !reported?.isWhole || !response.isAnswer()) return;
  // One that our bound has cut is no response to keep.
  const { cap } = target.quote;
  const isOurs = input.maxTokens === null || cap < input.maxTokens;
  if (isOurs && outputTokensOf(usage) >= cap * input.choices) return;
  const notice = { atLength: null, atEnd: null };
  const body = response.write({ usage: reported.usage, notice, balance: "0" });
  const { maxAgeSeconds, maxBytes } = cache.settings;
  const head: KeptHead = {
    user,
    keptAt: tx.now,
    expiresAt: tx.now + maxAgeSeconds * 1000,
    upstream: target.upstream.name,
    model: target.model,
  };
  const { key } = cache;
  const most = Math.min(maxBytes, responseCacheBytesMax);
  const value = body.length <= most ? texts.encode(key, head, body) : null;
  if (!value || value.length > most) return;
  for (const row of withExpiry(cachedResponseRows, { key, value })) tx.put(row.key, row.value);
}

/** Erases the responses that a user has got. */
export function createCacheEraser(
  { kv, committer }: Pick<Deps, "kv" | "committer">,
): Eraser {
  return eraseRows({
    name: "cachedResponses",
    kv,
    committer,
    prefix: ({ projectId }) => cachedResponsesPrefix(projectId),
    rewrite: ({ key, value }, { user }) =>
      value && keptHead<KeptHead>(value).user === user
        ? { sets: [], deletes: keysWithExpiry(cachedResponseRows, { key, value }) }
        : null,
  });
}
