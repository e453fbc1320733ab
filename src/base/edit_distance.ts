/** The fewest insertions, deletions, replacements and swaps of neighbors between two texts. */
export function editDistance(from: string, to: string): number {
  let before: number[] = [];
  let previous = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    for (let j = 1; j <= to.length; j++) {
      const differs = from[i - 1] === to[j - 1] ? 0 : 1;
      let least = Math.min(at(previous, j) + 1, at(row, j - 1) + 1, at(previous, j - 1) + differs);
      const isSwap = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      if (isSwap) least = Math.min(least, at(before, j - 2) + 1);
      row.push(least);
    }
    [before, previous] = [previous, row];
  }
  return at(previous, to.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Infinity;
}

/** Longer texts are not compared: the time grows with the square of the length. */
const lengthMax = 80;

/**
 * Returns the candidate that differs least from the text, by at most two edits, or by one where it
 * is short; null for none.
 */
export function nearestText(text: string, candidates: Iterable<string>): string | null {
  let found: string | null = null;
  let least = text.length < 8 ? 2 : 3;
  if (text.length > lengthMax) return null;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - text.length) >= least) continue;
    const distance = editDistance(text, candidate);
    if (distance < least) [found, least] = [candidate, distance];
  }
  return found;
}
