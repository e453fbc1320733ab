/** Whether a value is a list of token ids: whole numbers of at least zero. */
export function isTokenIds(value: unknown): value is number[] {
  return Array.isArray(value) &&
    value.every((item) => Number.isSafeInteger(item) && Number(item) >= 0);
}

/** Whether a value is a list of such lists. */
export function isListOfTokens(value: unknown): value is number[][] {
  return Array.isArray(value) && value.every(isTokenIds);
}
