import { BoundedMap } from "../base/bounded_map.ts";
import { isObject, type Json } from "../base/json.ts";
import type { FleetPart } from "./fleet.ts";

/**
 * What the processes have taken from rate limits, each by its name. A limit's state is a time that
 * each take moves on; every process tells by how much it has moved its own, and moves it by what
 * the others have told since.
 */
export interface SharedTakes extends FleetPart {
  /** This process has moved a limit on by so many ms. */
  took(name: string, ms: number): void;
}

/** The most limits that one process tells of; the ones that were used last. */
const toldMax = 300;
/** A limit by the minute is of no interest when it was not used for longer than that. */
const forgottenAfterMs = 120_000;

interface Taken {
  ms: number;
  at: number;
}

/** Creates it; `move` moves a limit of this process on by what another one has taken. */
export function createSharedTakes(
  elapsed: () => number,
  move: (name: string, ms: number) => void,
): SharedTakes {
  /** The one that was used longest ago comes first. */
  const taken = new BoundedMap<string, Taken>(toldMax);
  let heard: Map<string, Map<string, number>> | null = null;

  function forgetOld(): void {
    const now = elapsed();
    for (const [name, { at }] of taken) {
      if (now - at < forgottenAfterMs) break;
      taken.delete(name);
    }
  }

  return {
    took(name, ms) {
      const before = taken.get(name)?.ms ?? 0;
      taken.set(name, { ms: before + ms, at: elapsed() });
    },
    say() {
      forgetOld();
      if (taken.size === 0) return null;
      return Object.fromEntries([...taken].map(([name, { ms }]) => [name, Math.round(ms)]));
    },
    hear(others) {
      const before = heard;
      heard = new Map();
      for (const [process, told] of others) {
        const known = before?.get(process) ?? new Map<string, number>();
        const now = new Map(numbersOf(told));
        heard.set(process, now);
        // What the others took before this process started says nothing of the last minute.
        if (before === null) continue;
        for (const [name, ms] of now) {
          // Less than before: the other process had forgotten it, and counts anew.
          const last = known.get(name) ?? 0;
          const more = ms >= last ? ms - last : ms;
          if (more > 0) move(name, more);
        }
      }
    },
  };
}

/** The numbers of an object, by name; what is no number is left out. */
export function numbersOf(told: Json): [name: string, value: number][] {
  const numbers: [string, number][] = [];
  for (const [name, value] of Object.entries(isObject(told) ? told : {})) {
    if (typeof value === "number") numbers.push([name, value]);
  }
  return numbers;
}
