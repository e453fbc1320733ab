const failuresMax = 5;
const windowMs = 60_000;
const backoffMinMs = 5_000;
const backoffMaxMs = 60_000;
const retryAfterMaxMs = 5 * 60 * 1000;
/** How far a time is varied, so that processes do not probe together. */
const jitter = 0.2;
/** A probe whose end is not reported for this long is forgotten. */
const probeMs = 2 * 60 * 1000;

/** The longest time that a breaker is open, in ms. */
export const openMaxMs = retryAfterMaxMs * (1 + jitter);

/** One attempt of a target: when it began. */
export interface TargetAttempt {
  beganAt: number;
}

/** How an attempt failed. */
export interface TargetFailure {
  /** When it is asked to be tried again, in ms; null where that was not said. */
  retryAfterMs: number | null;
  /** A number in [0, 1) that differs between processes. */
  chance: number;
}

/** Closed: asked as usual. Open: asked last. Half-open: asked by one call at a time, the probe. */
export type BreakerState = "closed" | "open" | "half_open";

/**
 * Whether a target is asked as usual. It opens after five failures in a row within a minute, or at
 * once where the target says when to come back. All times are in ms by a clock that never goes
 * back.
 */
export class TargetBreaker {
  /** The last failures in a row while closed. */
  #failedAt: number[] = [];
  /** Null while closed. */
  #openUntil: number | null = null;
  /** Since it was closed. */
  #openings = 0;
  /** When it last opened or closed: attempts that began before tell nothing new. */
  #changedAt = -Infinity;
  #probe: TargetAttempt | null = null;

  /** Its state; open ones become half-open by time. */
  state(now: number): BreakerState {
    if (this.#openUntil === null) return "closed";
    return now < this.#openUntil ? "open" : "half_open";
  }

  /** Whether a call may ask it now as usual. */
  isReady(now: number): boolean {
    const state = this.state(now);
    return state === "closed" || state === "half_open" && !this.#isProbed(now);
  }

  /** Until when it is open, also where that has passed; null while closed. */
  get openUntil(): number | null {
    return this.#openUntil;
  }

  /** How often it has opened since it was closed. */
  get openings(): number {
    return this.#openings;
  }

  /** The failures in a row of the last minute, up to the one that opened it. */
  failures(now: number): number {
    return this.#recentFailures(now).length;
  }

  /** An attempt begins; null where it is half-open and another one is the probe. */
  begin(now: number): TargetAttempt | null {
    const attempt = { beganAt: now };
    if (this.state(now) !== "half_open") return attempt;
    if (this.#isProbed(now)) return null;
    return this.#probe = attempt;
  }

  /** An attempt ends without telling anything. */
  end(attempt: TargetAttempt): void {
    if (this.#probe === attempt) this.#probe = null;
  }

  /** An attempt got an answer. Returns whether the breaker closed. */
  answer({ beganAt }: TargetAttempt, now: number): boolean {
    if (this.#openUntil === null || beganAt <= this.#changedAt) return false;
    this.close(now);
    return true;
  }

  /** A response arrived whole: failures before it no longer count. */
  succeed(): void {
    if (this.#openUntil === null) this.#failedAt = [];
  }

  /** An attempt failed. Returns whether the breaker opened. */
  fail(attempt: TargetAttempt, { retryAfterMs, chance }: TargetFailure, now: number): boolean {
    this.end(attempt);
    const state = this.state(now);
    if (state === "open" || attempt.beganAt < this.#changedAt) return false;
    if (state === "closed") {
      this.#failedAt = [...this.#recentFailures(now), now];
      if (retryAfterMs === null && this.#failedAt.length < failuresMax) return false;
    }
    const backoffMs = Math.min(backoffMinMs * 2 ** this.#openings, backoffMaxMs);
    const askedMs = retryAfterMs !== null && retryAfterMs > 0
      ? Math.min(retryAfterMs, retryAfterMaxMs)
      : 0;
    // Never earlier than the target asks for.
    const openMs = Math.max(
      backoffMs * (1 - jitter + 2 * jitter * chance),
      askedMs * (1 + jitter * chance),
    );
    this.open(now + openMs, now);
    return true;
  }

  /** Opens it, or keeps it open until another time. */
  open(until: number, now: number): void {
    if (this.state(now) !== "open") {
      this.#openings++;
      this.#changedAt = now;
    }
    this.#openUntil = until;
    this.#probe = null;
  }

  /** Closes it. */
  close(now: number): void {
    this.#openUntil = null;
    this.#openings = 0;
    this.#failedAt = [];
    this.#changedAt = now;
    this.#probe = null;
  }

  #isProbed(now: number): boolean {
    return this.#probe !== null && now - this.#probe.beganAt < probeMs;
  }

  #recentFailures(now: number): number[] {
    return this.#failedAt.filter((at) => now - at < windowMs);
  }
}
