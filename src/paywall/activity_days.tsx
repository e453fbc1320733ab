/** @jsxImportSource @hono/hono/jsx */
import { type Amount, fromDecimal, toAmount } from "../base/money.ts";
import type { Entry } from "../ledger/entry.ts";
import type { Reader } from "../pages/texts/texts.tsx";

/** An entry, and the currency of its account. */
export interface ShownEntry {
  entry: Entry;
  currency: string;
}

/** What happened on one day (UTC): the messages of each currency together, the rest one by one. */
interface Day {
  /** In milliseconds since 1970. */
  start: number;
  messages: Map<string, ShownEntry[]>;
  others: ShownEntry[];
}

const dayMs = 24 * 60 * 60 * 1000;

/** The last movements by day, newest first; the messages of a day open on demand. */
export function ActivityDays(
  { entries, reader, now }: { entries: readonly ShownEntry[]; reader: Reader; now: number },
) {
  if (entries.length === 0) return null;
  return (
    <section class="card">
      <h2>{reader.texts.activity}</h2>
      {daysOf(entries).map((day) => <OneDay day={day} reader={reader} now={now} />)}
    </section>
  );
}

function daysOf(entries: readonly ShownEntry[]): Day[] {
  const days = new Map<number, Day>();
  for (const shown of entries) {
    const { entry: { createdAt, kind }, currency } = shown;
    const start = createdAt - (createdAt % dayMs);
    const day: Day = days.get(start) ?? { start, messages: new Map(), others: [] };
    days.set(start, day);
    if (kind !== "usage") day.others.push(shown);
    else day.messages.set(currency, [...day.messages.get(currency) ?? [], shown]);
  }
  return [...days.values()].sort((one, other) => other.start - one.start);
}

function OneDay({ day, reader, now }: { day: Day; reader: Reader; now: number }) {
  const name = dayName(day.start, now, reader.lang);
  return (
    <>
      {day.others.map((shown) => (
        <ul class="lines">
          <li>
            <span>
              {reader.texts[shown.entry.kind]} <span class="muted">{name}</span>
            </span>
            <Change {...shown} reader={reader} />
          </li>
        </ul>
      ))}
      {[...day.messages].map(([currency, messages]) => (
        <details class="day">
          <summary>
            <span>
              {reader.messages(messages.length)} <span class="muted">{name}</span>
            </span>
            <span>{reader.money(totalOf(messages), currency, "halfEven")}</span>
          </summary>
          <ul class="lines">
            {messages.map(({ entry: { createdAt, usage, delta } }) => (
              <li>
                <span>
                  <ClockTime at={createdAt} /> <span class="muted">{usage?.model}</span>
                </span>
                <span>{reader.money(negated(delta), currency, "halfEven")}</span>
              </li>
            ))}
          </ul>
        </details>
      ))}
    </>
  );
}

function Change({ entry: { delta }, currency, reader }: ShownEntry & { reader: Reader }) {
  const amount = fromDecimal(delta);
  return <span>{amount > 0n ? "+" : ""}{reader.money(amount, currency, "halfEven")}</span>;
}

/** The time of day: in UTC, and in the reader's zone where scripts run. */
function ClockTime({ at }: { at: number }) {
  const iso = new Date(at).toISOString();
  return <time datetime={iso} data-show="clock">{iso.slice(11, 16)} UTC</time>;
}

const negated = (delta: string): Amount => toAmount(-fromDecimal(delta));

function totalOf(messages: readonly ShownEntry[]): Amount {
  return toAmount(messages.reduce((sum, { entry: { delta } }) => sum - fromDecimal(delta), 0n));
}

/** "Today", "Yesterday", a day of this week, or a date. */
function dayName(start: number, now: number, lang: string): string {
  const age = Math.round((now - (now % dayMs) - start) / dayMs);
  if (age < 2) {
    const name = new Intl.RelativeTimeFormat(lang, { numeric: "auto" }).format(-age, "day");
    return name.charAt(0).toLocaleUpperCase(lang) + name.slice(1);
  }
  const form = age < 7 ? { weekday: "long" } as const : { dateStyle: "medium" } as const;
  return new Intl.DateTimeFormat(lang, { ...form, timeZone: "UTC" }).format(start);
}
