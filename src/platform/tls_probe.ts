import { isIP } from "node:net";
import { connect } from "node:tls";
import type { ServerAddress } from "../http/server_address.ts";
import { asksForCertificate, clientHello } from "../http/tls_hello.ts";

type Probed = ServerAddress & { address: string };

/** The most that is read of a server's first messages: a long chain of certificates. */
const messagesBytesMax = 64 * 1024;

/**
 * Whether a server's certificate has signed itself. Opens a connection of its own, on which nothing
 * but the handshake is sent: the certificate is looked at, and trusted for nothing.
 */
export function isSelfSigned(
  { hostname, address, port }: Probed,
  signal: AbortSignal,
): Promise<boolean> {
  const servername = isIP(hostname) ? {} : { servername: hostname };
  return new Promise((resolve) => {
    const socket = connect({
      host: address,
      port,
      ...servername,
      ALPNProtocols: ["http/1.1"],
      rejectUnauthorized: false,
    });
    const end = (found: boolean) => {
      signal.removeEventListener("abort", abort);
      socket.destroy();
      resolve(found);
    };
    const abort = () => end(false);
    signal.addEventListener("abort", abort, { once: true });
    socket.once("error", () => end(false));
    socket.once("close", () => end(false));
    socket.once("secureConnect", () => {
      end(String(socket.authorizationError).includes("DEPTH_ZERO_SELF_SIGNED_CERT"));
    });
  });
}

/**
 * Whether a server that refuses the handshake asks for a client certificate. Reads only its first
 * messages, on a connection of its own.
 */
export async function wantsClientCertificate(
  { hostname, address, port }: Probed,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    using connection = await Deno.connect({ hostname: address, port, signal });
    const aborted = new Promise<boolean>((resolve) => {
      signal.addEventListener("abort", () => resolve(false), { once: true });
    });
    await connection.write(clientHello(isIP(hostname) ? null : hostname));
    const asks = readsRequest(connection);
    asks.catch(() => {});
    return await Promise.race([asks, aborted]);
  } catch {
    return false;
  }
}

async function readsRequest(connection: Deno.Conn): Promise<boolean> {
  const bytes = new Uint8Array(messagesBytesMax);
  for (let length = 0; length < bytes.length;) {
    const read = await connection.read(bytes.subarray(length));
    if (read === null) return false;
    length += read;
    const asks = asksForCertificate(bytes.subarray(0, length));
    if (asks !== null) return asks;
  }
  return false;
}
