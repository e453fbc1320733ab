import type { Config } from "../config/config.ts";
import type { Clock } from "../base/clock.ts";
import type { Log, LogFields } from "../deps.ts";

/** Where log lines go, and where problems of the log are reported. */
interface Outlet {
  clock: Pick<Clock, "now" | "after">;
  /** Writes some of the bytes, and returns how many. Throws where it cannot. */
  write(bytes: Uint8Array): number;
  /** Reports a problem of the log itself. Must not throw. */
  complain(text: string): void;
}

/** One line of the log, before it is written. */
interface LogLine {
  /** In milliseconds since 1970. */
  now: number;
  level: string;
  event: string;
  fields: LogFields;
}

/** Formats a line, with its end; an empty text where it is not to be shown. */
export type FormatLine = (line: LogLine) => string;

const levels = ["debug", "info", "warn", "error"];
const flushAfterMs = 100;
/** How soon a slow reader is tried again, and how much is buffered for it. */
const retryAfterMs = 10;
const keptBytesMax = 1024 * 1024;
const lineEnd = 10;
// An error does not tell how much was written: Deno has its own buffer on standard output. A pipe
// takes whole lines up to this size completely or not at all (POSIX's PIPE_BUF).
const pieceBytesMax = 4096;

/** Formats lines as JSON. */
export function createJsonLines(): FormatLine {
  let moment = { at: NaN, text: "" };
  return ({ now, level, event, fields }) => {
    // Many lines share a millisecond, whose text costs as much as the rest of a line.
    if (now !== moment.at) moment = { at: now, text: new Date(now).toISOString() };
    const more = JSON.stringify(fields).slice(1);
    const comma = more === "}" ? "" : ",";
    return `{"time":"${moment.text}","level":"${level}","event":"${event}"${comma}${more}\n`;
  };
}

/** Fields with texts of others: of a server that is away, a proxy's whole page. */
const foreignFields: readonly (keyof LogFields)[] = ["cause", "error"];
const foreignCharsMax = 500;
/** A line of a stack, by which a fault of ours is found. */
const isFrame = (line: string) => line.startsWith("    at ");

/** The first line of an error, shortened, and its stack. */
function shortened(text: string): string {
  const [first = "", ...rest] = text.split("\n");
  const cut = first.length > foreignCharsMax ? `${first.slice(0, foreignCharsMax)}…` : first;
  return [cut, ...rest.filter(isFrame)].join("\n");
}

function bounded(fields: LogFields): LogFields {
  let result = fields;
  for (const name of foreignFields) {
    const value = fields[name];
    if (typeof value === "string") result = { ...result, [name]: shortened(value) };
  }
  return result;
}

/**
 * Writes lines, several at once: a line for each request must not cost a write each. It never
 * throws: lines that cannot be written are dropped, and their number is reported by the next line
 * that can. `flush` writes what is buffered.
 */
export function createLog(
  least: Config["logLevel"],
  { clock, write, complain }: Outlet,
  format: FormatLine = createJsonLines(),
): { log: Log; flush(): void } {
  let lines = "";
  let kept = new Uint8Array();
  let dropped = 0;
  let planned = false;
  let complained = false;
  /** Whether the output so far ends with a whole line. */
  let isWhole = true;

  const lineOf = (level: string, event: string, fields: LogFields = {}): string =>
    format({ now: clock.now(), level, event, fields: bounded(fields) });

  function plan(ms: number): void {
    if (!planned) clock.after(ms, flush);
    planned = true;
  }

  function complainOnce(why: string): void {
    if (!complained) complain(`The log cannot be written, so lines are dropped: ${why}\n`);
    complained = true;
  }

  /** Writes what was buffered and then this; true when everything is written. */
  function put(text: string): boolean {
    // The dropped line may have been written in part.
    const head = isWhole || kept.length > 0 ? "" : "\n";
    const bytes = joined(kept, head + text);
    kept = new Uint8Array();
    let at = 0;
    try {
      while (at < bytes.length) at += write(bytes.subarray(at, pieceEnd(bytes, at)));
      if (at > 0) complained = false;
      return true;
    } catch (error) {
      const rest = bytes.slice(at);
      if (error instanceof Deno.errors.WouldBlock) {
        kept = rest;
        plan(retryAfterMs);
      } else {
        dropped += rest.filter((byte) => byte === lineEnd).length - (at === 0 ? head.length : 0);
        complainOnce(String(error));
      }
      return false;
    } finally {
      if (at > 0) isWhole = bytes[at - 1] === lineEnd;
    }
  }

  function flush(): void {
    planned = false;
    const text = lines;
    lines = "";
    if (!put(text) || dropped === 0) return;
    const reported = dropped;
    dropped = 0;
    // If this line was dropped as well, the number of dropped lines is still to be reported.
    if (!put(lineOf("warn", "log_lines_dropped", { lines: reported })) && dropped > 0) {
      dropped = reported;
    }
  }

  return {
    flush,
    log(level, event, fields) {
      if (levels.indexOf(level) < levels.indexOf(least)) return;
      if (kept.length > 0 && kept.length + lines.length >= keptBytesMax) {
        dropped++;
        return complainOnce("its reader is too slow");
      }
      lines += lineOf(level, event, fields);
      if (level === "error") flush();
      else plan(flushAfterMs);
    },
  };
}

/** Returns where the next piece ends: with a line, if one ends soon enough. */
function pieceEnd(bytes: Uint8Array, at: number): number {
  const end = at + pieceBytesMax;
  if (end >= bytes.length) return bytes.length;
  const last = bytes.lastIndexOf(lineEnd, end - 1);
  return last >= at ? last + 1 : end;
}

function joined(kept: Uint8Array, text: string): Uint8Array<ArrayBuffer> {
  const more = new TextEncoder().encode(text);
  if (kept.length === 0) return more;
  const bytes = new Uint8Array(kept.length + more.length);
  bytes.set(kept);
  bytes.set(more, kept.length);
  return bytes;
}
