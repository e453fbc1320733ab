import { createHash } from "node:crypto";
import { BoundedMap } from "../base/bounded_map.ts";
import { memoizeByObject } from "../base/memoize_by_object.ts";
import type { Deps } from "../deps.ts";
import { targetHealthKey } from "../store/keys.ts";
import { RecentAverage } from "./recent_average.ts";
import { createSharedOpenings, SharedOpening } from "./shared_openings.ts";
import {
  type BreakerState,
  openMaxMs,
  type TargetAttempt,
  TargetBreaker,
} from "./target_breaker.ts";
import { type ChoiceCall, orderTargets } from "./target_choice.ts";
import type { Target, Targets, Upstream } from "./upstream.ts";

/**
 * The state of targets, in this process and, within seconds, in the others: whether their breaker
 * is open, and how fast they are. Only targets of routes that have others are known. A target is
 * one model of an upstream with one URL, name and key, of whatever project. An attempt is
 * recognized by the target's object, which belongs to one call.
 */
export interface TargetHealth {
  /**
   * The targets in the order in which they are to be asked: by the route's strategy, those whose
   * breaker is open last. Never throws for the store.
   */
  order(targets: Targets, call: ChoiceCall): Promise<readonly Target[]>;
  /**
   * Begins an attempt. False where the target's breaker is half-open and another call has the
   * probe: the target is then to be skipped, if there are others.
   */
  begin(target: Target): boolean;
  /**
   * The target's first token, or its whole response, came after so many ms: an open breaker closes.
   */
  answered(target: Target, firstByteMs: number): void;
  /** The target's response has arrived whole: earlier failures no longer count. */
  succeeded(target: Target): void;
  /**
   * The attempt failed in a way for which another target can be asked, never by the caller's own
   * error. `retryAfterMs` is from the target's Retry-After; null where it has none.
   */
  failed(target: Target, retryAfterMs: number | null): void;
  /**
   * The attempt ended without telling anything: the caller left, or the error was the caller's own.
   */
  ended(target: Target): void;
  /** Every target that is known. */
  view(): readonly TargetView[];
}

/** The state of one target. */
export interface TargetView {
  /** The upstream's name in its project, and its URL. */
  upstream: string;
  url: string;
  model: string;
  state: BreakerState;
  /** Until when the breaker is or was open, in ms since 1970; null while closed. */
  openUntil: number | null;
  /** Failures in a row within the last minute, up to the one that opened the breaker. */
  failures: number;
  /** How often the breaker has opened since it was closed. */
  openings: number;
  /** The recent average time to the first byte, in ms; null where that is not known. */
  firstByteMs: number | null;
}

interface Known extends Pick<TargetView, "upstream" | "url" | "model"> {
  breaker: TargetBreaker;
  firstByte: RecentAverage;
  opening: SharedOpening;
}

const targetsMax = 1_000;

/** Creates the memory of targets of one process. */
export function createTargetHealth(
  deps: Pick<Deps, "kv" | "committer" | "clock" | "log">,
): TargetHealth {
  const { clock } = deps;
  const openings = createSharedOpenings(deps);
  const all = new KnownTargets(clock);
  const attempts = new WeakMap<Target, TargetAttempt>();
  /** A number in [0, 1) by which this process varies its times. */
  let ownChance: number | null = null;

  /** Converts a time by the clock's `elapsed` to ms since 1970, as other processes read it. */
  const epochOf = (at: number) => Math.round(clock.now() + at - clock.elapsed());

  return {
    async order({ route, targets }, call) {
      if (!route || targets.length < 2) return targets;
      ownChance ??= call.random();
      const known = targets.map((target) => ({ target, about: all.note(target) }));
      const firstRead = openings.refresh(known.map(({ about }) => about.opening));
      if (firstRead) await firstRead;
      const now = clock.elapsed();
      const candidates = known.map(({ target, about }) => ({
        target,
        isReady: about.breaker.isReady(now),
        firstByteMs: about.firstByte.at(now),
      }));
      return orderTargets(route, candidates, call);
    },
    begin(target) {
      const known = all.find(target);
      if (!known) return true;
      const attempt = known.breaker.begin(clock.elapsed());
      if (!attempt) return false;
      attempts.set(target, attempt);
      return true;
    },
    answered(target, firstByteMs) {
      const known = all.find(target);
      if (!known) return;
      const now = clock.elapsed();
      known.firstByte.add(firstByteMs, now);
      const attempt = attempts.get(target) ?? { beganAt: now - firstByteMs };
      if (known.breaker.answer(attempt, now)) openings.publish(known.opening, null);
    },
    succeeded(target) {
      all.find(target)?.breaker.succeed();
    },
    failed(target, retryAfterMs) {
      const known = all.find(target);
      if (!known) return;
      const { breaker, opening } = known;
      const now = clock.elapsed();
      const attempt = attempts.get(target) ?? { beganAt: now };
      const chance = varied(ownChance ?? 0, breaker.openings);
      if (!breaker.fail(attempt, { retryAfterMs, chance }, now)) return;
      openings.publish(opening, epochOf(breaker.openUntil ?? now));
    },
    ended(target) {
      const attempt = attempts.get(target);
      if (attempt) all.find(target)?.breaker.end(attempt);
    },
    view() {
      const now = clock.elapsed();
      return all.list().map(({ upstream, url, model, breaker, firstByte }) => ({
        upstream,
        url,
        model,
        state: breaker.state(now),
        openUntil: breaker.openUntil === null ? null : epochOf(breaker.openUntil),
        failures: breaker.failures(now),
        openings: breaker.openings,
        firstByteMs: firstByte.at(now),
      }));
    },
  };
}

/** The known targets; of too many, those are forgotten that were asked for longest ago. */
class KnownTargets {
  readonly #clock: Pick<Deps["clock"], "now" | "elapsed">;
  readonly #known = new BoundedMap<string, Known>(targetsMax);

  constructor(clock: Pick<Deps["clock"], "now" | "elapsed">) {
    this.#clock = clock;
  }

  find(target: Target): Known | null {
    return this.#known.get(nameOf(target)) ?? null;
  }

  list(): readonly Known[] {
    return [...this.#known.values()];
  }

  note(target: Target): Known {
    const name = nameOf(target);
    const known = this.#known.get(name) ?? this.#make(target);
    this.#known.set(name, known);
    return known;
  }

  #make({ upstream, model }: Target): Known {
    const breaker = new TargetBreaker();
    const key = targetHealthKey(hashOf(upstream), model);
    const opening = new SharedOpening(key, (until) => this.#adopt(breaker, until));
    const { name, url } = upstream;
    return { upstream: name, url, model, breaker, firstByte: new RecentAverage(), opening };
  }

  /** Opens or closes a breaker as another process did. */
  #adopt(breaker: TargetBreaker, until: number | null): void {
    const now = this.#clock.elapsed();
    if (until === null) {
      if (breaker.state(now) === "open") breaker.close(now);
      return;
    }
    const leftMs = until - this.#clock.now();
    // A longer time than possible means that a clock was set.
    if (leftMs > 0 && leftMs <= openMaxMs) breaker.open(now + leftMs, now);
  }
}

function nameOf({ upstream, model }: Target): string {
  return `${hashOf(upstream)} ${model}`;
}

/**
 * A hash of the target's upstream with its key: when one project's key is used up, another
 * project's is not.
 */
const hashOf = memoizeByObject(({ url, name, apiKey }: Upstream) =>
  createHash("sha256").update(JSON.stringify([url, name, apiKey?.reveal() ?? ""])).digest("hex")
);

/** Returns another number in [0, 1) for each opening, derived from one number of the process. */
function varied(chance: number, openings: number): number {
  return (chance + openings * 0.618) % 1;
}
