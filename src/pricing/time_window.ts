/** A part of each day, or of some weekdays, in a time zone. */
export interface TimeWindow {
  /** Minutes after midnight; `to` is exclusive, and before `from` where it is on the next day. */
  from: number;
  to: number;
  /** The weekdays on which it begins, 0 for Monday; null is every day. */
  days: readonly number[] | null;
  timeZone: string;
}

const dayMinutes = 24 * 60;
const weekdays = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/** Reads a window as a price list has it: `16:30`, `00:30`, `mon`, `Asia/Shanghai`. */
export function parseTimeWindow({ from, to, days, timeZone }: {
  from: string;
  to: string;
  days?: readonly string[] | undefined;
  timeZone?: string | undefined;
}): TimeWindow {
  return {
    from: minutesOf(from),
    to: minutesOf(to),
    days: days ? days.map((day) => weekdays.indexOf(day)) : null,
    timeZone: timeZone ?? "UTC",
  };
}

/** Whether a window contains a time, in milliseconds since 1970. */
export function isWithin({ from, to, days, timeZone }: TimeWindow, at: number): boolean {
  const { day, minutes } = localTime(at, timeZone);
  const beginsOn = (weekday: number) => days === null || days.includes(weekday);
  if (from < to) return minutes >= from && minutes < to && beginsOn(day);
  if (minutes >= from) return beginsOn(day);
  return minutes < to && beginsOn((day + 6) % 7);
}

function minutesOf(text: string): number {
  const [hours = 0, minutes = 0] = text.split(":").map(Number);
  return hours * 60 + minutes;
}

const formats = new Map<string, Intl.DateTimeFormat>();

function localTime(at: number, timeZone: string): { day: number; minutes: number } {
  if (timeZone === "UTC") {
    const minutes = Math.floor(at / 60_000);
    // 1 January 1970 was a Thursday.
    return { day: (Math.floor(minutes / dayMinutes) + 3) % 7, minutes: minutes % dayMinutes };
  }
  let format = formats.get(timeZone);
  if (!format) {
    format = new Intl.DateTimeFormat("en-GB", {
      timeZone,
      weekday: "short",
      hour: "2-digit",
      minute: "2-digit",
      hourCycle: "h23",
    });
    formats.set(timeZone, format);
  }
  const parts = Object.fromEntries(
    format.formatToParts(at).map(({ type, value }) => [type, value]),
  );
  return {
    day: weekdays.indexOf((parts.weekday ?? "").slice(0, 3).toLowerCase()),
    minutes: Number(parts.hour) * 60 + Number(parts.minute),
  };
}
