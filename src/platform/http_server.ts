import { loggedFault } from "../base/errors.ts";
import type { Deps } from "../deps.ts";

/** Where requests come in. */
export interface HttpServer {
  /** Lets nobody in any more; resolves once all who are in have been answered. */
  shutdown(): Promise<void>;
}

const againAfterMs = 500;

/**
 * Serves requests at the place that the configuration names, of which `onListen` is told once.
 * Where no more connections can be taken, as with too many open files, those that there are go on,
 * and it listens again after a while. Throws where nobody can listen there from the start.
 */
export function listenHttp(
  { config, clock, log }: Pick<Deps, "config" | "clock" | "log">,
  fetch: Deno.ServeHandler,
  onListen: (port: number) => void,
): HttpServer {
  const { host: hostname } = config;
  const servers: Deno.HttpServer[] = [];
  let { port } = config;
  let stopped = false;

  function serve(told: (port: number) => void): void {
    const server = Deno.serve({ hostname, port, onListen: (at) => told(at.port) }, fetch);
    servers.push(server);
    // It may have been left to the system, which would choose another one now.
    port = server.addr.port;
    server.finished.catch(serveAgain);
  }

  function serveAgain(fault: unknown): void {
    if (stopped) return;
    log("error", "listening_failed", loggedFault(fault));
    clock.after(againAfterMs, () => {
      if (stopped) return;
      try {
        serve(() => {});
      } catch (error) {
        serveAgain(error);
      }
    });
  }

  serve(onListen);
  return {
    async shutdown() {
      stopped = true;
      await Promise.allSettled(servers.map((server) => server.shutdown()));
    },
  };
}
