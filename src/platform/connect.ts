import { isIP } from "node:net";
import type { Clock } from "../base/clock.ts";
import type { Deps } from "../deps.ts";
import type { Connect } from "../http/client.ts";
import { AllAddressesFailed, connectToFirst } from "../http/connect_first.ts";
import type { HttpSocket } from "../http/connection.ts";
import { openTunnel } from "../http/tunnel.ts";

/** How names are resolved before a connection to one of their addresses. */
interface NameOptions {
  resolve: Deps["resolve"];
  clock: Pick<Clock, "after">;
}

/**
 * Connects by TCP, through a proxy's tunnel where one is given, and by TLS where the server is
 * secure. `caCerts` are trusted besides the usual authorities. A server that is not given by its
 * address is looked up by `names`.
 */
export function createConnect(caCerts: string[] = [], names?: NameOptions): Connect {
  return async (server, signal, proxy, onReached) => {
    const target = { ...server, hostname: server.address ?? server.hostname };
    const plain = await dial(proxy ?? target, server.owner ?? "operator", signal, names);
    plain.setNoDelay(true);
    plain.setKeepAlive(true);
    if (!server.secure) return plain;
    let open: HttpSocket = plain;
    const close = () => {
      try {
        open.close();
      } catch {
        // The TCP connection has become part of the TLS connection, and is closed with it.
      }
    };
    signal.addEventListener("abort", close, { once: true });
    try {
      signal.throwIfAborted();
      if (proxy) await openTunnel(plain, target, proxy);
      onReached?.();
      const options = { hostname: server.hostname, caCerts, alpnProtocols: ["http/1.1"] };
      const secure = await Deno.startTls(plain, options);
      open = secure;
      signal.throwIfAborted();
      await secure.handshake();
      return secure;
    } catch (error) {
      close();
      throw error;
    } finally {
      signal.removeEventListener("abort", close);
    }
  };
}

/** Connects to a host by TCP: to the first of its addresses that works. */
async function dial(
  { hostname, port }: { hostname: string; port: number },
  owner: string,
  signal: AbortSignal,
  names?: NameOptions,
): Promise<Deno.TcpConn> {
  const to = (address: string, signal: AbortSignal) =>
    Deno.connect({ hostname: address, port, signal });
  if (!names || isIP(hostname) !== 0) return await to(hostname, signal);
  const addresses = await orAborted(names.resolve(hostname, owner), signal);
  const options = { clock: names.clock, signal, connectTo: to };
  try {
    return (await connectToFirst(addresses, options)).connected;
  } catch (error) {
    throw error instanceof AllAddressesFailed ? error.errors[0] : error;
  }
}

/** Waits for a lookup, which cannot be canceled, no longer than its call lasts. */
async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
