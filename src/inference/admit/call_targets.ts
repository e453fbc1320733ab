import type { JsonObject } from "../../base/json.ts";
import type { Deps } from "../../deps.ts";
import type { Amount } from "../../base/money.ts";
import { costBound, pricesOnlyUnits } from "../../pricing/price.ts";
import type { ModelTerms } from "../../pricing/terms.ts";
import { pricedOtherwise } from "../../upstreams/errors.ts";
import type { ReasoningModels } from "../../upstreams/reasoning.ts";
import type { Target } from "../../upstreams/upstream.ts";
import type { ModelRoute } from "../../projects/upstream_schema.ts";
import { keyText } from "../../store/batch.ts";
import type { CallTarget } from "../attempt.ts";
import type { InferenceCall } from "../call.ts";
import type { Format, ProviderTools } from "../format.ts";
import type { FittedRequest, ModelRequest } from "../model_request.ts";
import { coverageOf, pricedCall, toolCallsHeld } from "./priced_call.ts";
import { boundMedia } from "./prompt_size.ts";
import type { InferenceServices } from "../services.ts";

type TargetCall = Pick<InferenceCall, "caller" | "format" | "receivedAt"> & { input: ModelRequest };

interface PricedTarget {
  target: Target;
  terms: ModelTerms;
}

/** Targets, and the terms by which a response of each is priced. */
type PricedTargets = readonly PricedTarget[];

/** The targets that have a price. */
export function pricedTargets(
  { prices }: Pick<InferenceServices, "prices">,
  { caller: { snapshot: { project } }, input: { model: asked }, receivedAt: at }: TargetCall,
  targets: readonly Target[],
): PricedTargets {
  return targets.flatMap((target) => {
    const { model, place } = target;
    const terms = prices.targetTerms(project, { asked, model, place, at });
    return terms ? [{ target, terms }] : [];
  });
}

/**
 * Prepares the request for each target. Those whose price does not cover what is requested are left
 * out. Throws 400 where none is left.
 */
export function prepareTargets(
  { reasoningModels }: Pick<InferenceServices, "reasoningModels">,
  call: TargetCall,
  targets: PricedTargets,
): CallTarget[] {
  const prepared: CallTarget[] = [];
  let uncovered: unknown = null;
  for (const target of targets) {
    try {
      prepared.push(prepare(reasoningModels, call, target));
    } catch (error) {
      uncovered ??= error;
    }
  }
  if (prepared.length === 0) throw uncovered;
  return prepared;
}

function prepare(
  reasoningModels: ReasoningModels,
  { format, caller: { snapshot: { project } }, input: asked }: TargetCall,
  { target, terms }: PricedTarget,
): CallTarget {
  const { upstream, model } = target;
  const hasUnit = format.kind === "passed" && format.unit !== null;
  if (!hasUnit && pricesOnlyUnits(terms.price)) throw pricedOtherwise(asked.model);
  const covers = coverageOf(terms);
  const { request, removedTools } = fitToPrice(format, withModel(asked, model), {
    covers,
    allowed: project.allowedFields,
    toolCallsMax: terms.maxToolCalls ?? toolCallsHeld,
  });
  format.requirePriced(request, covers, project.allowedFields);
  const at = { projectId: project.id, name: upstream.name, url: upstream.url };
  return {
    target,
    upstream,
    model,
    terms,
    input: request,
    removedTools,
    reasoning: {
      isKnown: () => terms.reasoning ?? reasoningModels.reasons(at, model),
      isPossible: () => terms.reasoning ?? reasoningModels.mayReason(at, model),
    },
  };
}

/**
 * The targets of the upstream that keeps what a request refers to; all of them where it refers to
 * nothing, or that upstream is no target any more.
 */
export function withUpstream(targets: PricedTargets, name: string | null): PricedTargets {
  if (name === null) return targets;
  const those = targets.filter(({ target }) => target.upstream.name === name);
  return those.length > 0 ? those : targets;
}

/**
 * The largest request, in bytes, whose conversation is found by how it opens: for a longer one that
 * takes too long.
 */
const stickyBytesMax = 256 * 1024;

/** The targets in the order in which they are asked, by the strategy of their route. */
export async function inOrder(
  { targetHealth, conversations, deps: { randomBytes } }: Pick<
    InferenceServices,
    "targetHealth" | "conversations" | "deps"
  >,
  call: TargetCall & Pick<InferenceCall, "user">,
  { route, targets }: { route: ModelRoute; targets: readonly CallTarget[] },
): Promise<Pick<InferenceCall, "targets" | "conversation">> {
  const byTarget = new Map(targets.map((one) => [one.target, one]));
  const those = [...byTarget.keys()];
  const { strategy, sticky } = route;
  const isSticky = sticky && strategy === "weight" && call.input.bytes <= stickyBytesMax;
  const found = isSticky ? call.format.conversationOf?.(call.input) : null;
  const conversation = found ? keyText([callerOf(call), found.key]) : null;
  const isKnown = found && (found.isNamed || found.isContinued);
  const ordered = await targetHealth.order({ route, targets: those }, {
    stickyKey: found?.isNamed ? conversation : null,
    preferred: isKnown && conversation ? conversations.find(conversation, those) : null,
    random: () => randomShare(randomBytes),
    costOf: (target) => expectedCost(byTarget.get(target), call),
  });
  return { targets: ordered.flatMap((target) => byTarget.get(target) ?? []), conversation };
}

function callerOf({ caller, user }: TargetCall & Pick<InferenceCall, "user">): string {
  return keyText([caller.snapshot.project.id, user]);
}

/** Tokens of a response whose length nothing bounds. */
const usualOutput = 1_000;
/** Bytes of a request that are one token, as a rule of thumb. */
const bytesPerToken = 4;

/** The estimated cost of a call for its project at a target; null where that is not known. */
function expectedCost(one: CallTarget | undefined, { format }: TargetCall): Amount | null {
  if (!one) return null;
  const { input, terms } = one;
  const media = boundMedia(format, input, terms);
  const price = terms.listPrice ?? terms.price;
  const priced = pricedCall(input, { ...terms, price }, { hasMedia: media.tokens > 0 });
  const text = Math.ceil(Math.max(0, input.bytes - media.chars) / bytesPerToken);
  const output = input.outputTokens ?? Math.min(input.maxTokens ?? usualOutput, usualOutput);
  return costBound(priced, { input: text + media.tokens, output: output * input.choices });
}

/** A number in [0, 1). */
export function randomShare(randomBytes: Deps["randomBytes"]): number {
  return new DataView(randomBytes(4).buffer).getUint32(0) / 2 ** 32;
}

/** Returns the request with another model's name. */
export function withModel<R extends { model: string | null; body: JsonObject }>(
  input: R,
  model: string,
): R {
  return model === input.model ? input : { ...input, model, body: { ...input.body, model } };
}

function fitToPrice(
  format: Format,
  input: ModelRequest,
  options: Parameters<ProviderTools["fitToPrice"]>[1],
): FittedRequest {
  return format.tools?.fitToPrice(input, options) ?? { request: input, removedTools: [] };
}
