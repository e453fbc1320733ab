import { encodeUtf8 } from "../base/utf8.ts";

// TLS 1.2 (RFC 5246) sends its handshake in the clear, so its first messages tell why it fails.

const handshakeRecord = 22;
const certificateRequest = 13;
const serverHelloDone = 14;

const uint16 = (n: number) => [n >> 8, n & 255];
const withLength = (bytes: readonly number[]) => [...uint16(bytes.length), ...bytes];
const extension = (type: number, body: readonly number[]) => [...uint16(type), ...withLength(body)];

/** ECDHE with AES-GCM or ChaCha20: what Deno's own TLS offers in version 1.2. */
const ciphers = [0xc02c, 0xc02b, 0xcca9, 0xc030, 0xc02f, 0xcca8].flatMap(uint16);
const groups = [29, 23, 24].flatMap(uint16);
const signatures = [0x0403, 0x0503, 0x0807, 0x0804, 0x0805, 0x0806, 0x0401, 0x0501, 0x0601]
  .flatMap(uint16);

/** Writes the first message of a TLS 1.2 client, for the host of that name; null for an address. */
export function clientHello(name: string | null): Uint8Array<ArrayBuffer> {
  const extensions = [
    ...(name === null ? [] : extension(0, withLength([0, ...withLength([...encodeUtf8(name)])]))),
    ...extension(10, withLength(groups)),
    ...extension(11, [1, 0]),
    ...extension(13, withLength(signatures)),
    ...extension(23, []),
    ...extension(0xff01, [0]),
  ];
  // The handshake is never completed, so its random number protects nothing.
  const body = [3, 3, ...new Uint8Array(32), 0];
  body.push(...withLength(ciphers), 1, 0, ...withLength(extensions));
  return Uint8Array.from([handshakeRecord, 3, 1, ...withLength([1, 0, ...withLength(body)])]);
}

/** Returns the types of the handshake messages that a server has sent so far. */
function messageTypes(bytes: Uint8Array): number[] {
  const messages: number[] = [];
  for (let at = 0; at + 5 <= bytes.length && bytes[at] === handshakeRecord;) {
    const length = lengthAt(bytes, at + 3, 2);
    messages.push(...bytes.subarray(at + 5, at + 5 + length));
    at += 5 + length;
  }
  const types: number[] = [];
  for (let at = 0; at + 4 <= messages.length; at += 4 + lengthAt(messages, at + 1, 3)) {
    types.push(messages[at] ?? 0);
  }
  return types;
}

function lengthAt(bytes: ArrayLike<number>, at: number, size: number): number {
  let length = 0;
  for (let n = at; n < at + size; n++) length = length * 256 + (bytes[n] ?? 0);
  return length;
}

/**
 * Whether the server asks for a client certificate in its first messages; null while they are
 * incomplete.
 */
export function asksForCertificate(bytes: Uint8Array): boolean | null {
  const types = messageTypes(bytes);
  if (types.includes(certificateRequest)) return true;
  const hasEnded = types.includes(serverHelloDone) ||
    (bytes[0] ?? handshakeRecord) !== handshakeRecord;
  return hasEnded ? false : null;
}
