/** By how much the clocks of two processes differ at most, as far as it concerns periods. */
const clocksDifferMs = 5 * 60 * 1000;
const lengths = { day: "YYYY-MM-DD".length, month: "YYYY-MM".length };

/**
 * Returns the day or the month (UTC) in which something counts at `now` (ms since 1970). `last` is
 * the period counted in last: if another process's clock has just started the next one, that period
 * continues, since each starts only once. A period further in the future was counted by a wrong
 * clock.
 */
export function periodAt(now: number, unit: "day" | "month", last: string): string {
  const of = (ms: number) => new Date(ms).toISOString().slice(0, lengths[unit]);
  const next = of(now + clocksDifferMs);
  return last === next ? next : of(now);
}

/** The month of `now` (ms since 1970), UTC: `YYYY-MM`. */
export function monthOf(now: number): string {
  return utcDateOf(now).month;
}

/** The day of `now` (ms since 1970), UTC: `YYYY-MM-DD`. */
export function dayOf(now: number): string {
  return utcDateOf(now).day;
}

const hourMs = 60 * 60 * 1000;
const cached = { hour: -1, day: "", month: "" };

/** Computed once an hour: formatting a date costs more than everything else here. */
function utcDateOf(now: number): Readonly<typeof cached> {
  const hour = Math.floor(now / hourMs);
  if (hour !== cached.hour) {
    const text = new Date(now).toISOString();
    Object.assign(cached, { hour, day: text.slice(0, 10), month: text.slice(0, 7) });
  }
  return cached;
}
