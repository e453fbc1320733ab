const dayMs = 24 * 60 * 60 * 1000;
const lengths = { day: "YYYY-MM-DD".length, month: "YYYY-MM".length };

/**
 * The day or the month, UTC, in which something counts at `now` (ms since 1970). `last` is the one
 * that was counted in last: where another process's clock has begun the next one, it goes on, for
 * each begins once. What is later still is of a clock that was wrong, and is left.
 */
export function periodAt(now: number, unit: "day" | "month", last: string): string {
  const of = (ms: number) => new Date(ms).toISOString().slice(0, lengths[unit]);
  const next = of(now + dayMs);
  return last === next ? next : of(now);
}
