import { Bursts, projectBurst } from "./base/bursts.ts";
import type { Deps, LogFields } from "./deps.ts";

/** A request's line in the log. */
export interface AccessLine {
  /** Who sent it: see `networkOf`. */
  sender: string;
  route: string;
  method: string;
  status: number;
  /** Why it was refused, where it was: a code. Refused requests can be as many as anyone likes. */
  refused: string | null;
  /** Whether an error of ours need not wake anybody: strangers can cause it. */
  isHarmless: boolean;
  fields: LogFields;
}

/** The lines of requests in the log. */
export interface AccessLog {
  /**
   * Writes a line. Of refused requests, after the tenth of a sender in a second, further ones are
   * one line a minute with their count (`requests_refused`).
   */
  write(line: AccessLine): void;
  /** Writes what is only counted so far. */
  flush(): void;
}

type Folded = Pick<AccessLine, "sender" | "route" | "method" | "status" | "refused"> & {
  count: number;
};

const everyMs = 60_000;
/** Lines that are counted at once; further senders are counted together. */
const foldedMax = 1_000;

/** Creates the log of requests of one process. */
export function createAccessLog({ clock, log }: Pick<Deps, "clock" | "log">): AccessLog {
  const senders = new Bursts(clock, projectBurst);
  const folded = new Map<string, Folded>();
  let isPlanned = false;

  function flush(): void {
    const lines = [...folded.values()];
    folded.clear();
    for (const { sender: client, route: path, method, status, refused: code, count } of lines) {
      log("warn", "requests_refused", { client, method, path, status, code, count });
    }
  }

  function fold({ sender, route, method, status, refused }: AccessLine): void {
    const own = [sender, route, method, status, refused].join(" ");
    const isFull = folded.size >= foldedMax && !folded.has(own);
    const name = isFull ? ["", route, method, status, refused].join(" ") : own;
    const about = { sender: isFull ? "others" : sender, route, method, status, refused };
    folded.set(name, { ...about, count: (folded.get(name)?.count ?? 0) + 1 });
    if (isPlanned) return;
    isPlanned = true;
    clock.after(everyMs, () => {
      isPlanned = false;
      flush();
    });
  }

  return {
    write(line) {
      const { sender, status, refused, isHarmless, fields } = line;
      if (refused !== null && !senders.isFirst(sender)) return fold(line);
      const error = isHarmless ? "warn" : "error";
      log(status >= 500 ? error : "info", "request", fields);
    },
    flush,
  };
}
