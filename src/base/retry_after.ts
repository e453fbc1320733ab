// RFC 9110, 5.6.7: the current format, and two obsolete ones that must be read. All are GMT.
const httpDate = new RegExp(
  "^([A-Z][a-z]{2}, \\d\\d [A-Z][a-z]{2} \\d{4} [\\d:]{8} GMT|" +
    "[A-Z][a-z]{5,8}, \\d\\d-[A-Z][a-z]{2}-\\d\\d [\\d:]{8} GMT|" +
    "[A-Z][a-z]{2} [A-Z][a-z]{2} [ \\d]\\d [\\d:]{8} \\d{4})$",
);

/**
 * Parses `Retry-After`: seconds or a date (RFC 9110, 10.2.3). Returns ms from now; null for
 * neither.
 */
export function readRetryAfter(text: string, now: number): number | null {
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  // Date.parse alone accepts nearly anything, such as "wait 99999".
  if (!httpDate.test(text)) return null;
  const date = Date.parse(text.endsWith(" GMT") ? text : `${text} GMT`);
  return Number.isNaN(date) ? null : Math.max(0, date - now);
}
