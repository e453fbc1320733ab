import { badRequest } from "../base/errors.ts";

/** A span of time, and the time zone whose days it is read in. */
export interface Span {
  /** In milliseconds since 1970; `to` is the first moment after it. */
  from: number;
  to: number;
  /** An IANA name, such as `Europe/Berlin`. */
  timeZone: string;
}

/** The query of a period, as texts. */
export interface SpanQuery {
  from?: string | undefined;
  to?: string | undefined;
  tz?: string | undefined;
}

/**
 * Reads a period. `from` and `to` are instants with an offset, or dates or months in the time zone
 * `tz`, which is UTC by default; `to` is exclusive. Without `to`, a day or a month as `from` stands
 * for the whole of it. Throws 400 for a date that does not exist, an unknown time zone, and a
 * period that ends before it begins.
 */
export function readSpan({ from, to, tz = "UTC" }: SpanQuery, now: number): Span {
  const timeZone = readTimeZone(tz);
  const begins = from === undefined ? monthAt(now, timeZone) : readMoment("from", from, timeZone);
  const ends = to === undefined ? begins.after ?? now + 1 : readMoment("to", to, timeZone).at;
  if (begins.at >= ends) throw badRequest("to", "'to' must be later than 'from'.");
  return { from: begins.at, to: ends, timeZone };
}

/** Reads a moment, as `readSpan` does. Throws 400. */
export function readInstant(name: string, text: string, tz = "UTC"): number {
  return readMoment(name, text, readTimeZone(tz)).at;
}

function readTimeZone(tz: string): string {
  try {
    return Temporal.PlainDate.from("2026-01-01").toZonedDateTime(tz).timeZoneId;
  } catch {
    throw badRequest("tz", `'tz' must be the name of a time zone, such as Europe/Berlin.`);
  }
}

interface Moment {
  at: number;
  /** The first moment after the day or month; absent of an instant. */
  after?: number;
}

function readMoment(name: string, text: string, timeZone: string): Moment {
  const fault = badRequest(
    name,
    `'${name}' must be a month such as 2026-10, a day such as 2026-10-31, or a time such as ` +
      "2026-10-31T08:00:00Z, and exist.",
  );
  try {
    if (/^\d{4}-\d\d$/.test(text)) {
      const month = Temporal.PlainYearMonth.from(text, { overflow: "reject" });
      return daysFrom(month.toPlainDate({ day: 1 }), { months: 1 }, timeZone);
    }
    if (/^\d{4}-\d\d-\d\d$/.test(text)) {
      const day = Temporal.PlainDate.from(text, { overflow: "reject" });
      return daysFrom(day, { days: 1 }, timeZone);
    }
    if (/^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)$/.test(text)) {
      return { at: Temporal.Instant.from(text).epochMilliseconds };
    }
  } catch {
    throw fault;
  }
  throw fault;
}

function daysFrom(
  day: Temporal.PlainDate,
  length: { days: number } | { months: number },
  timeZone: string,
): Moment {
  const startOf = (date: Temporal.PlainDate) => date.toZonedDateTime(timeZone).epochMilliseconds;
  return { at: startOf(day), after: startOf(day.add(length)) };
}

function monthAt(now: number, timeZone: string): Moment {
  const today = Temporal.Instant.fromEpochMilliseconds(now).toZonedDateTimeISO(timeZone);
  return daysFrom(today.toPlainDate().with({ day: 1 }), { months: 1 }, timeZone);
}

/** Returns a function that names the day of a time zone in which a moment lies: `2026-10-31`. */
export function createDayOf(timeZone: string): (ms: number) => string {
  let day = { name: "", from: 0, to: 0 };
  return (ms) => {
    if (ms < day.from || ms >= day.to) {
      const date = Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(timeZone)
        .toPlainDate();
      const { at, after = at } = daysFrom(date, { days: 1 }, timeZone);
      day = { name: date.toString(), from: at, to: after };
    }
    return day.name;
  };
}
