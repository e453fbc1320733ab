/** The most deliveries of one subscription that run at once. */
export const concurrencyMax = 32;
const windowMs = 5 * 60 * 1000;
const windowAttemptsMax = 50;
const attemptsMin = 10;
const failuresShare = 0.7;
const openMinMs = 30_000;
const openMaxMs = 10 * 60 * 1000;

/**
 * Stops attempts against a failing endpoint: after many failures it opens, and waiting deliveries
 * use up no attempts. Then one probe goes out, and after its success the number of concurrent
 * deliveries doubles with each round of successes. Kept in memory: after a restart a failing
 * endpoint is soon recognized again.
 */
export class Breaker {
  #outcomes: { at: number; ok: boolean }[] = [];
  #openUntil = 0;
  #openMs = openMinMs;
  /** How many deliveries may run at once; one while probing. */
  #allowed = concurrencyMax;
  /** Successes since the last change of `#allowed`. */
  #successes = 0;

  /** How many deliveries may run now; 0 while the breaker is open. */
  allowed(now: number): number {
    return this.openUntil(now) === null ? this.#allowed : 0;
  }

  /** Until when nothing is sent; null while closed. */
  openUntil(now: number): number | null {
    const leftMs = this.#openUntil - now;
    // A longer time than possible means that the clock was set back.
    return leftMs > 0 && leftMs <= openMaxMs ? this.#openUntil : null;
  }

  /** Takes over an opening from another process: nothing is sent until then, and then one probe. */
  adopt(until: number, now: number): void {
    if (until <= this.#openUntil || until - now > openMaxMs) return;
    this.#openUntil = until;
    this.#allowed = 1;
    this.#successes = 0;
    this.#outcomes = [];
  }

  /**
   * Records how an attempt ended: whether the endpoint responded, with success or a permanent
   * error.
   */
  record(ok: boolean, now: number): void {
    // Failures of deliveries that were running when it opened carry no new information.
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
    // Later outcomes are judged on their own, not by those that led to this.
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
