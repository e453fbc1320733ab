import { encodeUtf8 } from "../base/utf8.ts";
import type { ServerAddress } from "./server_address.ts";
import type { HttpSocket } from "./connection.ts";
import { ProtocolError, readHead } from "./head.ts";
import type { HttpProxy } from "./proxy.ts";

const headBytesMax = 16 * 1024;

/** A proxy does not connect to the server. */
export class ProxyError extends Error {
  override name = "ProxyError";
  /** The status with which it refused; null where it did not respond. */
  readonly status: number | null;

  constructor(message: string, status: number | null = null) {
    super(message);
    this.status = status;
  }
}

/**
 * Asks a proxy to connect the socket to a server (RFC 9110, section 9.3.6). Afterwards the socket
 * leads to the server. Throws when the proxy refuses, closes, or sends more than its response.
 */
export async function openTunnel(
  socket: HttpSocket,
  { hostname, port }: ServerAddress,
  { authorization }: HttpProxy,
): Promise<void> {
  const host = `${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;
  const credentials = authorization ? `proxy-authorization: ${authorization}\r\n` : "";
  const request = encodeUtf8(`CONNECT ${host} HTTP/1.1\r\nhost: ${host}\r\n${credentials}\r\n`);
  for (let sent = 0; sent < request.length;) sent += await socket.write(request.subarray(sent));

  const buffer = new Uint8Array(headBytesMax);
  for (let length = 0; length < buffer.length;) {
    const read = await socket.read(buffer.subarray(length));
    if (read === null) throw new ProxyError("the proxy closed the connection without a response");
    length += read;
    const head = readHead(buffer.subarray(0, length));
    if (!head) continue;
    if (head.status < 200 || head.status > 299) {
      throw new ProxyError(
        `the proxy refused to connect to ${host} (status ${head.status})`,
        head.status,
      );
    }
    if (head.length < length) throw new ProtocolError("the proxy sent data before the server");
    return;
  }
  throw new ProtocolError("the proxy's response is too long");
}
