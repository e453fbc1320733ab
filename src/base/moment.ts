import { z } from "zod";
import { badRequest } from "./errors.ts";
import { withoutPattern } from "./fields.ts";

const error = "must be an ISO 8601 time such as 2026-11-21T08:00:00Z, or a date (UTC)";

/**
 * A time of a query or a body, as ms since 1970: an ISO 8601 time, or a date, which is its first
 * moment in UTC. A day that does not exist, such as 30 February, is an error.
 */
export const moment = z.union([
  z.iso.date().meta({ override: withoutPattern }),
  z.iso.datetime({ offset: true }).meta({ override: withoutPattern }),
], { error }).transform((text) => Date.parse(text));

/** Reads a time as `moment` does, also one to the minute; null for anything else. */
export function parseMoment(text: string): number | null {
  const toTheSecond = text.replace(/(T\d\d:\d\d)(?=Z|[+-])/, "$1:00");
  const { success, data } = moment.safeParse(toTheSecond);
  return success ? data : null;
}

/** Whether a range is not turned round or empty; one that is open at an end is not. */
export function isRange(
  { from, to }: { from?: number | null | undefined; to?: number | null | undefined },
): boolean {
  return from === undefined || from === null || to === undefined || to === null || from < to;
}

/** Throws 400 for a range that is turned round or empty. `to` is exclusive. */
export function requireRange(range: Parameters<typeof isRange>[0]): void {
  if (!isRange(range)) throw badRequest("from", "'from' must be before 'to'.");
}
