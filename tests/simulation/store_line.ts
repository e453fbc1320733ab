import type { Kv, Write } from "../../src/store/kv.ts";
import type { MemoryStore } from "./memory_store.ts";
import type { Timeline } from "./timeline.ts";

/** What happens to an atomic write on its way to the store and back. */
type Fate =
  /** Lands, and is reported as landed. */
  | "lands"
  /** Does not arrive; the caller gets an error. */
  | "lost"
  /** Lands; the caller gets an error. */
  | "landed, reported failed"
  /**
   * Is sent twice, as remote stores do after a lost response; the caller gets the second response.
   */
  | "repeated"
  /** Arrives after its caller has given up. */
  | "late"
  /** Lands; the response arrives after its caller has given up. */
  | "answered late";

const faults: readonly Fate[] = [
  "lost",
  "landed, reported failed",
  "repeated",
  "late",
  "answered late",
];

/** The quality of the connection to the store, which changes during a simulation. */
export interface Weather {
  /** The share of writes that meet a fault, and of reads that fail or are late. */
  writeFaults: number;
  readFaults: number;
  /** The longest usual round trip to the store, in ms. */
  slownessMs: number;
}

/** The process that uses the connection. */
export interface Holder {
  readonly name: string;
  readonly dead: boolean;
  /** It stops, and has told the others so. */
  readonly leaving?: boolean;
  /** The time by its own clock, which may be wrong, in ms. */
  now(): number;
}

/** Events around the writes of a process. */
export interface LineEvents {
  /** A write has landed, also that of a process that is dead by now. */
  landed(holder: Holder, write: Write): void;
  /** Just before a write lands, and right after it, before the process gets the result. */
  beforeLanding(holder: Holder): void;
  afterLanding(holder: Holder, write: Write): void;
  /** A fault or a delay of the store that the process may notice. */
  fault(): void;
}

interface LineOptions {
  timeline: Timeline;
  store: MemoryStore;
  weather: Weather;
  holder: Holder;
  events: LineEvents;
}

/** Up to this latency, most reads take no time. */
const calmMs = 2;
const lateMinMs = 5_100;
const lateMaxMs = 20_000;

/** One process's connection to the shared store. A dead process gets no responses. */
export function createStoreLine({ timeline, store, weather, holder, events }: LineOptions): Kv {
  const wayMs = () => timeline.between(0.05, weather.slownessMs);
  const isSlow = () => weather.slownessMs > calmMs;

  function read<T>(work: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      if (holder.dead) return;
      const faulty = weather.readFaults > 0 && timeline.chance(weather.readFaults);
      if (faulty || isSlow()) events.fault();
      // Most round trips are short: a turn of its own for each would be most of the work.
      else if (timeline.chance(0.75)) return void resolve(work());
      if (faulty && timeline.chance(0.7)) {
        return void timeline.after(wayMs(), () => !holder.dead && reject(broken("read")));
      }
      const answer = () => {
        try {
          const value = work();
          return () => resolve(value);
        } catch (error) {
          return () => reject(error);
        }
      };
      // Read at the end of the way, or right at the start of a long one.
      const early = timeline.chance(0.3) ? answer() : null;
      const ms = faulty ? timeline.between(lateMinMs, lateMaxMs) : wayMs();
      timeline.after(ms, () => !holder.dead && (early ?? answer())());
    });
  }

  /** Whether the write arrives: what a process sent before it died still may. */
  function arrives(): boolean {
    if (!holder.dead) events.beforeLanding(holder);
    return !holder.dead || timeline.chance(0.5);
  }

  function land(write: Write, fate: Fate): Outcome {
    const outcome = store.commitOrFailed(write);
    const result = typeof outcome === "string" ? describe(write) : "refused";
    timeline.trace.note(timeline.elapsed, `${holder.name} ${fate}: ${result}`);
    if (typeof outcome === "string") events.landed(holder, write);
    if (!holder.dead) events.afterLanding(holder, write);
    return outcome;
  }

  /** When it lands and what the response is; every fault concerns time or the response. */
  function send(write: Write, fate: Fate, answer: (result: () => Outcome) => void): void {
    const goingMs = fate === "late" ? timeline.between(lateMinMs, lateMaxMs) : wayMs();
    const lost = () => {
      throw broken("write");
    };
    timeline.after(goingMs, () => {
      if (fate === "lost" || !arrives()) return answer(lost);
      let result: () => Outcome;
      try {
        const outcome = land(write, fate);
        result = () => outcome;
      } catch (error) {
        result = () => {
          throw error;
        };
      }
      if (fate === "landed, reported failed") result = lost;
      const backMs = fate === "answered late" ? timeline.between(lateMinMs, lateMaxMs) : wayMs();
      timeline.after(backMs, () => {
        if (fate !== "repeated") return answer(result);
        const again = store.commitOrFailed(write);
        timeline.after(wayMs(), () => answer(() => again));
      });
    });
  }

  function atomicOrFailed(write: Write): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      if (holder.dead) return;
      const fate = timeline.chance(weather.writeFaults) ? timeline.pick(faults) : "lands";
      if (fate !== "lands" || isSlow()) events.fault();
      send(write, fate, (result) => {
        if (holder.dead) return;
        try {
          resolve(result());
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  return {
    limits: store.kv.limits,
    get: (key) => read(() => store.read(key)),
    getMany: (keys) => read(() => keys.map((key) => store.read(key))),
    list: (options) => read(() => store.list(options)),
    async atomic(write) {
      const outcome = await atomicOrFailed(write);
      return typeof outcome === "string" ? outcome : null;
    },
    ...(store.limits.namesFailed ? { atomicOrFailed } : {}),
    close: () => {},
  };
}

/** A version, or the positions of the checks that failed. */
type Outcome = string | readonly number[];

function broken(what: string): Error {
  return new TypeError(`error sending request: the connection broke during a ${what}`);
}

/** Describes a write in a few words. */
function describe({ sets, deletes }: Write): string {
  const names = sets.filter(({ key }) => key[0] !== "commit").map(({ key }) => String(key[0]));
  const counted = new Map<string, number>();
  for (const name of names) counted.set(name, (counted.get(name) ?? 0) + 1);
  const text = [...counted].map(([name, count]) => (count > 1 ? `${count} ${name}` : name));
  return `${text.join(", ") || "nothing"}${deletes.length > 0 ? `, -${deletes.length}` : ""}`;
}
