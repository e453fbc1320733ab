/** How many deliveries one subscription has under way at most. */
export const concurrencyMax = 32;
const windowMs = 5 * 60 * 1000;
const windowAttemptsMax = 50;
const attemptsMin = 10;
const failuresShare = 0.7;
const openMinMs = 30_000;
const openMaxMs = 10 * 60 * 1000;

/**
 * Keeps a failing endpoint from being tried for nothing: after many failures it opens, and uses up
 * no attempts; then one probe goes out, and after its success the number under way doubles with
 * each round of successes. In memory: after a restart a failing endpoint is soon known again.
 */
export class Breaker {
  #outcomes: { at: number; ok: boolean }[] = [];
  #openUntil = 0;
  #openMs = openMinMs;
  /** How many may be under way; falls to one for the probe. */
  #allowed = concurrencyMax;
  /** Successes since the last change of `#allowed`. */
  #successes = 0;

  /** How many may be under way now; 0 while open. */
  allowed(now: number): number {
    return this.openUntil(now) === null ? this.#allowed : 0;
  }

  /** Until when nothing goes out; null when it is closed. */
  openUntil(now: number): number | null {
    const leftMs = this.#openUntil - now;
    // What is longer than it can be is of a clock that was set back since.
    return leftMs > 0 && leftMs <= openMaxMs ? this.#openUntil : null;
  }

  /** Notes how an attempt ended: whether the endpoint took it, for good or bad. */
  record(ok: boolean, now: number): void {
    // What was under way as it opened tells nothing new by failing.
    if (!ok && this.openUntil(now) !== null) return;
    this.#outcomes.push({ at: now, ok });
    if (this.#outcomes.length > windowAttemptsMax) this.#outcomes.shift();
    if (ok) return this.#recover();
    const isProbe = this.#allowed === 1;
    if (!(isProbe || this.#isFailing(now))) return;
    this.#openUntil = now + this.#openMs;
    this.#openMs = Math.min(this.#openMs * 2, openMaxMs);
    this.#allowed = 1;
    this.#successes = 0;
    // What comes after is judged by itself, and no more by what led to this.
    this.#outcomes = [];
  }

  #recover(): void {
    if (this.#allowed === concurrencyMax) return;
    this.#openUntil = 0;
    if (++this.#successes < this.#allowed) return;
    this.#successes = 0;
    this.#allowed = Math.min(this.#allowed * 2, concurrencyMax);
    if (this.#allowed < concurrencyMax) return;
    this.#openMs = openMinMs;
    this.#outcomes = [];
  }

  #isFailing(now: number): boolean {
    const recent = this.#outcomes.filter(({ at }) => now - at < windowMs);
    const failures = recent.filter(({ ok }) => !ok).length;
    return recent.length >= attemptsMin && failures >= recent.length * failuresShare;
  }
}
