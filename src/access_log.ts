import { Bursts, projectBurst } from "./base/bursts.ts";
import type { Deps, LogFields } from "./deps.ts";

/** The line of a refused request in the log: there can be as many as anyone likes. */
interface RefusedLine {
  /** Who sent it: see `networkOf`. */
  sender: string;
  route: string;
  method: string;
  status: number;
  /** Why it was refused: a code. */
  refused: string;
  /** Whether an error of ours need not wake anybody: strangers can cause it. */
  isHarmless: boolean;
  fields: LogFields;
}

/** The lines of requests in the log. */
export interface AccessLog {
  /** Writes the line of a request that was not refused. */
  write(status: number, fields: LogFields): void;
  /**
   * Writes the line of a refused request. After the tenth of a sender in a second, further ones are
   * one line a minute with their count (`requests_refused`).
   */
  writeRefused(line: RefusedLine): void;
  /** Writes what is only counted so far. */
  flush(): void;
}

type Folded = Pick<RefusedLine, "sender" | "route" | "method" | "status" | "refused"> & {
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

  function fold({ sender, route, method, status, refused }: RefusedLine): void {
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
    write: (status, fields) => log(status >= 500 ? "error" : "info", "request", fields),
    writeRefused(line) {
      const { sender, status, isHarmless, fields } = line;
      if (!senders.isFirst(sender)) return fold(line);
      const error = isHarmless ? "warn" : "error";
      log(status >= 500 ? error : "info", "request", fields);
    },
    flush,
  };
}
