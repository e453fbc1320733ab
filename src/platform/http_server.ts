import { errorFields } from "../base/errors.ts";
import type { Deps } from "../deps.ts";

/** The server that receives requests. */
export interface HttpServer {
  /** Accepts no more connections; resolves once all requests under way have their responses. */
  shutdown(): Promise<void>;
}

const againAfterMs = 500;

/**
 * Serves requests at the configured address, which `onListen` receives once. When no more
 * connections can be accepted, for example with too many open files, the existing ones go on, and
 * it listens again after a pause. Throws when it cannot listen there at the start.
 */
export function listenHttp(
  { config, clock, log }: Pick<Deps, "config" | "clock" | "log">,
  fetch: Deno.ServeHandler,
  onListen: (port: number) => void,
): HttpServer {
  const servers: Deno.HttpServer[] = [];
  let port = config.port;
  let stopped = false;

  function serve(onPort: (port: number) => void): void {
    const server = Deno.serve(
      { hostname: config.host, port, onListen: (at) => onPort(at.port) },
      fetch,
    );
    servers.push(server);
    // The system may have chosen the port, and would choose another one now.
    port = server.addr.port;
    server.finished.catch(serveAgain);
  }

  function serveAgain(error: unknown): void {
    if (stopped) return;
    log("error", "listening_failed", errorFields(error));
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
