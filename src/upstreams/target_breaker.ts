const failuresMax = 5;
const windowMs = 60_000;
const backoffMinMs = 5_000;
const backoffMaxMs = 60_000;
const retryAfterMaxMs = 5 * 60 * 1000;
/** How far a time is varied, so that processes do not probe together. */
const jitter = 0.2;
/** How long a probe may take, in ms. One whose end is not reported until then is forgotten. */
const probeMs = 2 * 60 * 1000;

/** The longest time that a breaker is open, in ms. */
export const openMaxMs = retryAfterMaxMs * (1 + jitter);

/** One attempt to call a target. */
export interface TargetAttempt {
  beganAt: number;
}

/** How an attempt failed. */
export interface TargetFailure {
  /** The pause that the target asks for, in ms; null where it asks for none. */
  retryAfterMs: number | null;
  /** A number in [0, 1) that differs between processes. */
  chance: number;
}

/** Closed: asked as usual. Open: asked last. Half-open: asked by one call at a time, the probe. */
export type BreakerState = "closed" | "open" | "half_open";

/**
 * The breaker of a target: decides whether the target is asked as usual. Opens after five failures
 * in a row within a minute, or at once where the target says when to come back. All times are in ms
 * by a clock that never goes back.
 */
export class TargetBreaker {
  /** The times of the last failures in a row, while the breaker is closed. */
  #failedAt: number[] = [];
  /** Until when the breaker is open; null while closed. */
  #openUntil: number | null = null;
  /** How often the breaker has opened since it was last closed. */
  #openings = 0;
  /** When the breaker last opened or closed: attempts that began before tell nothing new. */
  #changedAt = -Infinity;
  #probe: TargetAttempt | null = null;

  /** The breaker's state. An open breaker becomes half-open when its time has passed. */
  state(now: number): BreakerState {
    if (this.#openUntil === null) return "closed";
    return now < this.#openUntil ? "open" : "half_open";
  }

  /** Whether a call may ask the target now as usual. */
  isReady(now: number): boolean {
    const state = this.state(now);
    return state === "closed" || state === "half_open" && !this.#isProbed(now);
  }

  /** Until when the breaker is or was open; null while closed. */
  get openUntil(): number | null {
    return this.#openUntil;
  }

  /** How often the breaker has opened since it was closed. */
  get openings(): number {
    return this.#openings;
  }

  /** How many failures in a row the last minute had, up to the one that opened the breaker. */
  failures(now: number): number {
    return this.#recentFailures(now).length;
  }

  /** Begins an attempt. Null where the breaker is half-open and another attempt is the probe. */
  begin(now: number): TargetAttempt | null {
    const attempt = { beganAt: now };
    if (this.state(now) !== "half_open") return attempt;
    if (this.#isProbed(now)) return null;
    return this.#probe = attempt;
  }

  /** Ends an attempt that showed neither success nor failure. */
  end(attempt: TargetAttempt): void {
    if (this.#probe === attempt) this.#probe = null;
  }

  /** Records an attempt's answer. Returns whether it closed the breaker. */
  answer({ beganAt }: TargetAttempt, now: number): boolean {
    if (this.#openUntil === null || beganAt <= this.#changedAt) return false;
    this.close(now);
    return true;
  }

  /** Records a response that arrived whole: failures before it no longer count. */
  succeed(): void {
    if (this.#openUntil === null) this.#failedAt = [];
  }

  /** Records an attempt's failure. Returns whether it opened the breaker. */
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

  /** Opens the breaker, or keeps it open until another time. */
  open(until: number, now: number): void {
    if (this.state(now) !== "open") {
      this.#openings++;
      this.#changedAt = now;
    }
    this.#openUntil = until;
    this.#probe = null;
  }

  /** Closes the breaker. */
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
