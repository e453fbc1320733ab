import { type Account, decodeAccount, type Hold } from "../../src/ledger/account.ts";
import { fromBytes } from "../../src/base/json.ts";
import type { Entry } from "../../src/ledger/entry.ts";
import type { Write } from "../../src/store/kv.ts";
import type { MemoryStore } from "./memory_store.ts";
import type { Tempo } from "./process.ts";
import type { Holder, Weather } from "./store_line.ts";
import type { Timeline } from "./timeline.ts";
import type { Violations } from "./violations.ts";

interface HoldersWorld {
  timeline: Timeline;
  store: MemoryStore;
  weather: Weather;
  tempo: Tempo;
  clockErrorMaxMs: number;
  /** Whether a process runs that could take over. */
  isAlive(): boolean;
}

/** What a storm may delay is not judged for so long after it, in ms. */
const calmAfterMs = 60_000;
/** Well before a hold would expire: within that time what a dead process held is free. */
const freeAfterMs = 48_000;
const lookEveryMs = 4_000;
/** With rarer polls, processes notice a death late. */
const pollEveryMaxMs = 8_000;

/** Checks who ends holds: those of dead processes soon, those of living ones never. */
export class HoldersAudit {
  readonly #world: HoldersWorld;
  readonly #violations: Violations;
  /** The processes by the ids that their holds name. */
  readonly #lives = new Map<string, Holder>();
  readonly #accounts = new Map<string, Account>();
  readonly #deadSince = new Map<string, number>();
  #stormAt = 0;
  #nobodyAt = 0;

  constructor(world: HoldersWorld, violations: Violations) {
    this.#world = world;
    this.#violations = violations;
    this.#repeat();
  }

  /** Called with each write that has landed, and the process that sent it. */
  landed(sender: Holder, { sets }: Write): void {
    this.#watchWeather();
    const expired = new Set(sets.flatMap(({ key, value }) => {
      if (key[0] !== "entry") return [];
      const { kind, id } = fromBytes<Entry>(value);
      return kind === "expired" ? [id.replace("act_", "req_")] : [];
    }));
    for (const { key, value } of sets) {
      if (key[0] !== "account") continue;
      const name = key.join(" ");
      const account = decodeAccount(value);
      const before = this.#accounts.get(name);
      this.#accounts.set(name, account);
      for (const { holder } of account.holds) {
        if (holder !== null && !this.#lives.has(holder)) this.#lives.set(holder, sender);
      }
      for (const hold of before?.holds ?? []) if (expired.has(hold.id)) this.#mayEnd(hold);
    }
  }

  #mayEnd({ id, holder, expiresAt }: Hold): void {
    const life = this.#lives.get(holder ?? "");
    if (!life || hasDied(life) || !this.#isCalm) return;
    const leftMs = expiresAt - life.now();
    this.#violations.must(
      leftMs <= 5_000 + 4 * this.#world.clockErrorMaxMs,
      "what a living process holds is left to it",
      () => `${id} of ${life.name}, for ${leftMs} ms more`,
    );
  }

  #repeat(): void {
    this.#world.timeline.after(lookEveryMs, () => {
      this.#look();
      this.#repeat();
    });
  }

  #look(): void {
    const { timeline, isAlive, tempo } = this.#world;
    this.#watchWeather();
    const now = timeline.elapsed;
    if (!isAlive() || tempo.pollEveryMs > pollEveryMaxMs) this.#nobodyAt = now;
    for (const [id, life] of this.#lives) {
      if (hasDied(life) && !this.#deadSince.has(id)) this.#deadSince.set(id, now);
    }
    if (!this.#isCalm || now - this.#nobodyAt < freeAfterMs) return;
    for (const [name, { holds }] of this.#accounts) {
      for (const { id, holder } of holds) {
        const sinceMs = now - (this.#deadSince.get(holder ?? "") ?? now);
        const about = () => `${id} in ${name}, ${sinceMs} ms after the death of ${holder}`;
        const isFree = sinceMs < freeAfterMs || !this.#isStored(name, id);
        this.#violations.must(isFree, "what a dead process held is free soon", about);
      }
    }
  }

  #isStored(name: string, id: string): boolean {
    const { value } = this.#world.store.read(name.split(" "));
    return value !== null && decodeAccount(value).holds.some((hold) => hold.id === id);
  }

  #watchWeather(): void {
    const { weather: { writeFaults, readFaults, slownessMs }, timeline } = this.#world;
    if (writeFaults + readFaults > 0 || slownessMs > 2) this.#stormAt = timeline.elapsed;
  }

  get #isCalm(): boolean {
    return this.#world.timeline.elapsed - this.#stormAt >= calmAfterMs;
  }
}

/** Whether a process has died, or is stopping and has left the others. */
function hasDied(life: Holder): boolean {
  return life.dead || life.leaving === true;
}
