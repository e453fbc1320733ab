/**
 * The count of a period before the current one: its name, what was spent in it, and for a month the
 * requests and tokens. When a wrong clock is set right, time may lead back to that period: its
 * count then continues, so that no limit begins again.
 */
export type EarlierCount = readonly [
  period: string,
  spent: string,
  requests?: number,
  tokens?: number,
];

/** The most earlier periods of one kind whose counts are kept. */
const keptMax = 3;

/** Returns what was counted in a period; null where nothing is known of it. */
export function countedIn(period: string, earlier: readonly EarlierCount[]): EarlierCount | null {
  return earlier.find(([name]) => name === period) ?? null;
}

/** Returns the earlier counts when another period than that of `last` becomes the current one. */
export function leftBehind(
  last: EarlierCount | null,
  earlier: readonly EarlierCount[],
  current: string,
): readonly EarlierCount[] {
  const left = last && last[0] !== "" ? [last, ...earlier] : earlier;
  return left.filter(([period]) => period !== current).slice(0, keptMax);
}
