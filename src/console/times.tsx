/** @jsxImportSource @hono/hono/jsx */
import { badRequest } from "../base/errors.ts";
import { isRange, parseMoment } from "../base/moment.ts";
import { FormField } from "../pages/form_parts.tsx";

type Query = (name: string) => string | undefined;

const dayMs = 24 * 60 * 60 * 1000;
const forms = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?Z?)?$/;

/**
 * Reads `from` and `to` of a page's query, which are dates or times in UTC, as ms since 1970; null
 * where one is not given. `to` is exclusive, and a date there includes that day. Throws 400, also
 * for times that are turned round.
 */
export function readTimes(query: Query): { from: number | null; to: number | null } {
  const [from, to] = [query("from") ?? "", query("to") ?? ""];
  const [start, end] = [readTime("from", from), readTime("to", to)];
  const times = { from: start, to: end === null ? null : end + (isDate(to) ? dayMs : 0) };
  if (!isRange(times)) throw badRequest("from", "‘From’ must be before ‘to’.");
  return times;
}

function readTime(name: string, text: string): number | null {
  if (text === "") return null;
  const at = forms.test(text) ? parseMoment(isDate(text) ? text : text.replace(/Z?$/, "Z")) : null;
  if (at !== null) return at;
  throw badRequest(name, `‘${name}’ must be a date such as 2026-11-21.`);
}

const isDate = (text: string) => !text.includes("T");

/** Returns the query that `readTimes` reads as these times, which are to the minute. */
export function timesQuery({ from, to }: { from: number; to?: number }): string {
  const query = new URLSearchParams({ from: timeText(from) });
  // A date as the end includes its day.
  if (to !== undefined) query.set("to", to % dayMs === 0 ? timeText(to - dayMs) : timeText(to));
  return query.toString();
}

/** To the minute; a date where a day begins. */
function timeText(at: number): string {
  const text = new Date(at).toISOString();
  return at % dayMs === 0 ? text.slice(0, 10) : text.slice(0, 16);
}

/** The fields of a form that `readTimes` reads. A time of day is kept where the query has one. */
export function TimeFields({ query }: { query: Query }) {
  const field = (name: "from" | "to", label: string) => {
    const text = query(name) ?? "";
    const type = isDate(text) ? "date" : "datetime-local";
    return <FormField name={name} label={label} type={type} value={text.replace(/Z$/, "")} />;
  };
  return (
    <>
      {field("from", "From")}
      {field("to", "To")}
    </>
  );
}
