import { Bursts, projectBurst } from "../../base/bursts.ts";
import { errorFields } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { Deps } from "../../deps.ts";
import type { FleetPart } from "../../fleet/fleet.ts";
import type { NewEvent } from "../../events/event.ts";
import type { EmitEvents } from "../../projects/commit_with_events.ts";
import type { RequestLog } from "../../requests/request_log.ts";
import { keyText } from "../../store/batch.ts";

/** A refusal of a user, and its events, which say how many refusals they stand for. */
interface RefusalReport {
  projectId: string;
  user: string;
  reason: string;
  events(count: number): NewEvent[];
}

/**
 * Emits the events of refusals: of one user and reason, the first at once, and then one a minute
 * for all that followed. A client that repeats a refused request must not cost a write each time.
 * Where more than ten users of a project begin to be refused in a second, the others have no
 * events: their refusals are in the summary and the log of requests.
 */
export interface RefusalReports {
  report(refusal: RefusalReport): Promise<void>;
  /** Emits and writes what waits for the end of its minute, in the log of requests too. */
  flush(): Promise<void>;
  /**
   * Emits and writes what waits in this process, and has the other processes do so at their next
   * beat.
   */
  flushEverywhere(): Promise<void>;
  /** Shares with the other processes how often each has asked them to flush. */
  part: FleetPart;
}

const everyMs = 60_000;
/** The most users and reasons at once. The refusals of further ones are only in the summary. */
const waitingMax = 10_000;

interface Window {
  endsAt: number;
  /** The last refusal since the window began, and how many there were. */
  last: RefusalReport | null;
  count: number;
}

/** Creates the reports of one process. */
export function createRefusalReports(
  { clock, log }: Pick<Deps, "clock" | "log">,
  emit: EmitEvents,
  requestLog: Pick<RequestLog, "flush">,
): RefusalReports {
  const windows = new Map<string, Window>();
  const projects = new Bursts(clock, projectBurst);
  let isTicking = false;
  let asked = 0;
  let heard: ReadonlyMap<string, Json> = new Map();

  function tick(): void {
    isTicking = windows.size > 0;
    if (!isTicking) return;
    clock.after(everyMs, () => {
      const now = clock.elapsed();
      const ended = [...windows].filter(([, { endsAt }]) => endsAt <= now);
      for (const [name, { last }] of ended) if (!last) windows.delete(name);
      void emitAll(ended.map(([, window]) => window)).then(tick);
    });
  }

  async function emitAll(ended: readonly Window[]): Promise<void> {
    for (const window of ended) {
      const { last, count } = window;
      if (!last) continue;
      window.last = null;
      window.count = 0;
      window.endsAt = clock.elapsed() + everyMs;
      await emit(last.projectId, last.events(count)).catch((error) =>
        log("error", "refusals_not_reported", { project: last.projectId, ...errorFields(error) })
      );
    }
  }

  const flush = () => emitAll([...windows.values()]).then(requestLog.flush);

  return {
    async report(refusal) {
      const { projectId, user, reason, events } = refusal;
      const name = keyText([projectId, user, reason]);
      const window = windows.get(name);
      if (window) {
        window.last = refusal;
        window.count++;
        return;
      }
      if (windows.size >= waitingMax || !projects.isFirst(projectId)) return;
      windows.set(name, { endsAt: clock.elapsed() + everyMs, last: null, count: 0 });
      if (!isTicking) tick();
      await emit(projectId, events(1));
    },
    flush,
    async flushEverywhere() {
      asked++;
      await flush();
    },
    part: {
      say: () => asked || null,
      hear(others) {
        const isAsked = [...others].some(([process, times]) => heard.get(process) !== times);
        heard = others;
        if (!isAsked) return;
        flush().catch((error) => log("warn", "request_log_not_written", errorFields(error)));
      },
    },
  };
}
