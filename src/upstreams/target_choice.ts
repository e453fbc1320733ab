import type { ModelRoute } from "../projects/upstream_schema.ts";
import type { Target } from "./upstream.ts";

/** A target of a call, with its known state. */
export interface Candidate {
  target: Target;
  /** False while the target's breaker is open, or another call has the probe. */
  isReady: boolean;
  /** The target's recent time to the first byte, in ms; null where that is not known. */
  firstByteMs: number | null;
}

/** The properties of a call on which the order of its targets depends. */
export interface ChoiceCall {
  /** A key that always leads to the same choice by weight; null for a choice by chance. */
  stickyKey: string | null;
  /** The target to be asked first, if it is ready; null: none. */
  preferred: Target | null;
  /** Returns a random number in [0, 1). */
  random: () => number;
  /** Returns the cost of this call at a target, in units of money; null where that is not known. */
  costOf: (target: Target) => bigint | null;
}

/** The share of calls for which `fastest` asks another target than the fastest first. */
const exploredShare = 0.05;

/**
 * The targets in the order of the route's strategy. Those that are not ready come last, also after
 * those with the weight 0.
 */
export function orderTargets(
  route: Pick<ModelRoute, "strategy" | "sticky">,
  candidates: readonly Candidate[],
  call: ChoiceCall,
): readonly Target[] {
  const ready = candidates.filter(({ isReady }) => isReady);
  const others = candidates.filter(({ isReady }) => !isReady);
  const all = [ready, others].flatMap((group) => ordered(route, group, call))
    .map(({ target }) => target);
  const { preferred } = call;
  if (!preferred || !ready.some(({ target }) => target === preferred)) return all;
  return [preferred, ...all.filter((target) => target !== preferred)];
}

function ordered(
  { strategy, sticky }: Pick<ModelRoute, "strategy" | "sticky">,
  candidates: readonly Candidate[],
  call: ChoiceCall,
): readonly Candidate[] {
  switch (strategy) {
    case "order":
      return candidates;
    case "cheapest":
      return sortedBy(candidates, ({ target }) => call.costOf(target) ?? Infinity);
    case "fastest":
      return byFirstByte(candidates, call.random);
    case "weight": {
      const { stickyKey } = call;
      const chance = sticky && stickyKey !== null ? stickyChance(stickyKey) : call.random;
      return sortedBy(candidates, ({ target }) => drawnAt(target.weight, chance(target)));
    }
  }
}

/**
 * The place of a target in a draw, the lowest first, by a chance in [0, 1). Each target comes first
 * with the share of its weight: Efraimidis and Spirakis, "Weighted random sampling". With a hash as
 * the chance this is rendezvous hashing: a changed weight moves only what that target gains or
 * loses.
 */
function drawnAt(weight: number, chance: number): number {
  return weight > 0 ? -Math.log(1 - chance) / weight : Infinity;
}

/** Always the same chance for one key and target. */
function stickyChance(key: string): (target: Target) => number {
  return ({ upstream, model }) => hashShare([key, upstream.name, model].join("\0"));
}

/**
 * Orders by the time to the first byte. For a share of the calls, another target is asked first, so
 * that its time is known and stays true.
 */
function byFirstByte(
  candidates: readonly Candidate[],
  random: () => number,
): readonly Candidate[] {
  const sorted = sortedBy(candidates, ({ firstByteMs }) => firstByteMs ?? Infinity);
  if (random() >= exploredShare) return sorted;
  const unknown = sorted.filter(({ firstByteMs }) => firstByteMs === null);
  const pool = unknown.length > 0 ? unknown : sorted.slice(1);
  const explored = pool[Math.floor(random() * pool.length)];
  return explored ? [explored, ...sorted.filter((other) => other !== explored)] : sorted;
}

/** Sorts by a rank, the lowest first; equal ones stay as they are. Each rank is asked for once. */
function sortedBy(
  candidates: readonly Candidate[],
  rankOf: (candidate: Candidate) => number | bigint,
): readonly Candidate[] {
  return candidates
    .map((candidate) => ({ candidate, rank: rankOf(candidate) }))
    .sort((a, b) => a.rank < b.rank ? -1 : a.rank > b.rank ? 1 : 0)
    .map(({ candidate }) => candidate);
}

/** A hash of a text as a number in [0, 1): cyrb53, which is fast, even, and not secret. */
function hashShare(text: string): number {
  let high = 0xdeadbeef;
  let low = 0x41c6ce57;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    high = Math.imul(high ^ unit, 0x9e3779b1);
    low = Math.imul(low ^ unit, 0x5f356495);
  }
  const mixedHigh = mixed(high, low);
  const mixedLow = mixed(low, high);
  return ((mixedLow & 0x1fffff) * 0x1_0000_0000 + (mixedHigh >>> 0)) / 2 ** 53;
}

function mixed(one: number, other: number): number {
  return Math.imul(one ^ (one >>> 16), 0x85ebca6b) ^ Math.imul(other ^ (other >>> 13), 0xc2b2ae35);
}
