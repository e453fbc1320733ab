/**
 * What was counted in a period before the current one: its name and what was spent in it, and of a
 * month what was used. A clock that was wrong and is set right leads back to a period: its count
 * continues, so that no limit begins again.
 */
export type EarlierCount = readonly [
  period: string,
  spent: string,
  requests?: number,
  tokens?: number,
];

/** Of how many periods of one kind the counts are kept, besides the current one. */
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
