import { errorFields } from "../base/errors.ts";
import type { Deps } from "../deps.ts";
import { listenWithoutUpgrades, type UpgradeFilter } from "./upgrade_filter.ts";

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
  if (config.ignoresUpgrade) return listenBehindFilter({ config, clock, log }, fetch, onListen);
  return listenAt(config.host, config.port, { clock, log }, fetch, onListen);
}

/** Lets clients connect to a filter, and the filter to the server. */
function listenBehindFilter(
  { config, clock, log }: Pick<Deps, "config" | "clock" | "log">,
  fetch: Deno.ServeHandler,
  onListen: (port: number) => void,
): HttpServer {
  let filter: UpgradeFilter | null = null;
  const withClient: Deno.ServeHandler = (request, info) => {
    const { remoteAddr } = info;
    const client = "port" in remoteAddr ? filter?.clientOf(remoteAddr.port) : null;
    return fetch(request, client ? { ...info, remoteAddr: client } : info);
  };
  const server = listenAt("127.0.0.1", 0, { clock, log }, withClient, (serverPort) => {
    filter = listenWithoutUpgrades({
      hostname: config.host,
      port: config.port,
      serverPort,
      async onFailure(error) {
        log("error", "listening_failed", errorFields(error));
        await clock.sleep(againAfterMs);
      },
    });
    onListen(filter.port);
  });
  return {
    async shutdown() {
      filter?.close();
      await server.shutdown();
      await filter?.drained();
    },
  };
}

function listenAt(
  hostname: string,
  wishedPort: number,
  { clock, log }: Pick<Deps, "clock" | "log">,
  fetch: Deno.ServeHandler,
  onListen: (port: number) => void,
): HttpServer {
  const servers: Deno.HttpServer[] = [];
  let port = wishedPort;
  let stopped = false;

  function serve(onPort: (port: number) => void): void {
    const server = Deno.serve({ hostname, port, onListen: (at) => onPort(at.port) }, fetch);
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
