import { nearestText } from "../../base/edit_distance.ts";
import { findAccount } from "../../ledger/authorization.ts";
import { allowsModel, requireModel } from "../../projects/key_models.ts";
import { countUnpricedHourly } from "../../summaries/hourly_counters.ts";
import { modelNotFound, noUpstream } from "../../upstreams/errors.ts";
import type { Targets } from "../../upstreams/upstream.ts";
import { inOrder, prepareTargets, pricedTargets, withUpstream } from "./call_targets.ts";
import type { InferenceCall, ReadCall } from "../call.ts";
import { callBlockedEvent } from "../finish/events.ts";
import type { ReportServices } from "./refuse.ts";
import type { KeptReference } from "../model_request.ts";
import { resolveReferences } from "../kept/kept_responses.ts";
import { measureMedia } from "./measure_media.ts";
import { loadTurns, type TurnsToLoad } from "../kept/kept_turns.ts";
import { withCache } from "../receive/response_cache.ts";
import type { InferenceServices } from "../services.ts";

/** The services that finding the targets of a call needs. */
export type TargetServices =
  & ReportServices
  & Pick<InferenceServices, "findTargets" | "prices" | "reasoningModels" | "refusedModels">;
/** The services that reading the content of a call needs. */
export type CompleteServices = Pick<
  InferenceServices,
  "deps" | "texts" | "prices" | "reasoningModels" | "targetHealth" | "conversations"
>;

/** A call whose targets and account are known, and whose content was not read yet. */
export interface FoundCall {
  call: InferenceCall;
  route: Targets["route"];
  /** Turns of the call's conversation that have to be loaded; null where there are none. */
  turns: TurnsToLoad | null;
}

/**
 * Finds targets with their prices, and the account. Throws 403 for a key that may not call the
 * model, 404 for a model without a price, 400 for what its price does not
 * cover and for an id that is not its user's, 502 for no upstream.
 */
export async function findTargetsOf(
  services: TargetServices,
  read: ReadCall,
): Promise<FoundCall> {
  const { deps, findTargets } = services;
  const { caller, input, user, telemetry } = read;
  const { key, snapshot: { project } } = caller;
  const { model } = input;
  requireModel(key, model);
  const { route, targets: found } = await findTargets(project, model);
  const priced = pricedTargets(services, read, found);
  if (priced.length === 0) await refuseUnpriced(services, read, { route, targets: found });
  const references = read.format.kept?.references(input) ?? [];
  const whose = { project, user };
  const { hiddenTokens, turns, upstream } = await resolveReferences(deps, whose, references);
  const targets = prepareTargets(services, read, withUpstream(priced, upstream));
  for (const { upstream: { name, url }, model } of targets) {
    const loading = services.reasoningModels.load({ projectId: project.id, name, url }, model);
    if (loading) await loading;
  }
  telemetry.span?.set({ "farebox.project": project.id, "gen_ai.request.model": model });
  const call = {
    ...read,
    targets,
    isRouted: route !== null,
    conversation: null,
    cache: null,
    hiddenTokens,
    previousResponse: references.find(isPreviousResponse)?.id ?? null,
    history: null,
    ref: await findAccount(deps.kv, project, user),
  };
  return { call, route, turns };
}

/**
 * Reads what takes long: the conversation that the call continues and the size of its file. Then
 * puts its targets in order, and looks for a kept response.
 */
export function completeCall(
  services: CompleteServices,
  found: FoundCall,
): InferenceCall | Promise<InferenceCall> {
  const { call, route, turns } = found;
  const hasCache = call.caller.snapshot.project.responseCache.enabled;
  const hasChoice = route !== null && call.targets.length > 1;
  if (turns || call.input.measure || hasChoice || hasCache) return completed(services, found);
  const measuring = measureMedia(call.format, call.input, services.deps.clock);
  return measuring ? measuring.then(() => call) : call;
}

async function completed(
  services: CompleteServices,
  { call, route, turns }: FoundCall,
): Promise<InferenceCall> {
  if (turns) await addTurns(services, call, turns);
  const { measure, ...measured } = call.input;
  if (measure) call.input = { ...measured, ...measure() };
  if (turns || measure) call.targets = prepareTargets(services, call, call.targets);
  const measuring = measureMedia(call.format, call.input, services.deps.clock);
  if (measuring) await measuring;
  if (route && call.targets.length > 1) {
    Object.assign(call, await inOrder(services, call, { route, targets: call.targets }));
  }
  const hasCache = call.caller.snapshot.project.responseCache.enabled;
  return hasCache ? await withCache(services, call) : call;
}

async function addTurns(
  { deps: { kv }, texts }: Pick<InferenceServices, "deps" | "texts">,
  call: InferenceCall,
  turns: TurnsToLoad,
): Promise<void> {
  const { bodies, request, format, input, caller: { key, snapshot: { project } } } = call;
  const reserve = (bytes: number) => bodies.add(request, key.id, bytes);
  const { size, ...kept } = await loadTurns({ kv, texts, projectId: project.id, reserve }, turns);
  call.input = format.kept?.withKept(input, kept) ?? input;
  call.history = size && { ...size, tokens: turns.size?.tokens ?? 0 };
}

/**
 * Throws 404 where no target has a price, or no upstream of the route serves the model, and 502
 * where there is no upstream.
 */
async function refuseUnpriced(
  services: TargetServices,
  read: ReadCall,
  { route, targets }: Targets,
): Promise<never> {
  const { deps, prices } = services;
  const { caller: { key, snapshot: { project } }, input: { model }, receivedAt } = read;
  const isPriced = targets.length === 0 && prices.terms(project, model, receivedAt) !== null;
  if (isPriced) throw route ? modelNotFound(model) : noUpstream(deps.config);
  await reportUnpriced(services, read);
  const { models, catalogue } = project.pricing;
  const names = [...Object.keys(models), ...(catalogue ? prices.catalogueModels(project) : [])];
  throw modelNotFound(model, nearestText(model, names.filter((name) => allowsModel(key, name))));
}

/** Reports a request for a model without a price: its owner may have forgotten one. */
async function reportUnpriced(
  { deps, refusalReports, refusedModels }: TargetServices,
  { id, user, caller, input, receivedAt }: ReadCall,
): Promise<void> {
  const { id: projectId } = caller.snapshot.project;
  const reason = "model_without_price";
  deps.metrics.unpricedCalls.add();
  const model = refusedModels.nameOf(projectId, input.model);
  deps.committer.count(countUnpricedHourly(projectId, model, receivedAt));
  await refusalReports.report({
    projectId,
    user,
    reason,
    events: (count) => [callBlockedEvent({ id, user, ref: null, input }, { reason, count })],
  });
}

function isPreviousResponse({ param }: KeptReference): boolean {
  return param === "previous_response_id";
}
