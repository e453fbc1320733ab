import { latin1Of } from "../base/latin1.ts";

/** The head of an HTTP/1.1 response (RFC 9112), as far as it is needed. */
export interface Head {
  status: number;
  /** The minor version: 1.0 keeps no connection open. */
  minor: 0 | 1;
  /** By lower-case name; repeated headers are joined by commas. */
  headers: ReadonlyMap<string, string>;
  /** Its length in bytes, including the empty line. */
  length: number;
}

/** The server violates HTTP/1.1, so nothing that it sends can be relied on. */
export class ProtocolError extends Error {
  override name = "ProtocolError";
  /** The head of the response, where only its body cannot be read. */
  head: Head | null = null;
}

const lineEnds = /\r?\n\r?\n/g;
const statusLine = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: |$)/;
const tolerantStatusLine = /^HTTP\/1\.([01])[ \t]+([1-9]\d\d)(?:[ \t]|$)/;
/** A header that continues on the next line (RFC 9112, section 5.2). */
const fold = /[ \t]*\r?\n[ \t]+/g;
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
// deno-lint-ignore no-control-regex -- control characters are what is refused
const controls = /[\x00-\x08\x0a-\x1f\x7f]/;

/**
 * Reads the head at the start of `bytes`; null when it is incomplete. Throws `ProtocolError`.
 * `isTolerant` accepts what curl and Go accept too: folded headers, spaces before a colon, and odd
 * characters in headers that mean nothing here.
 */
export function readHead(bytes: Uint8Array<ArrayBuffer>, isTolerant = false): Head | null {
  const text = latin1Of(bytes);
  // A line may end in LF alone, and empty lines before the first are ignored (RFC 9112, 2.2).
  const begin = /^[\r\n]*/.exec(text)?.[0].length ?? 0;
  lineEnds.lastIndex = begin;
  const end = lineEnds.exec(text);
  if (!end) return null;
  const head = text.slice(begin, end.index);
  const [first = "", ...lines] = (isTolerant ? head.replace(fold, " ") : head).split(/\r?\n/);
  const [, minor, status] = (isTolerant ? tolerantStatusLine : statusLine).exec(first) ?? [];
  if (!status || (!isTolerant && controls.test(first))) {
    throw new ProtocolError(`not a status line of HTTP/1.1: ${first.slice(0, 100)}`);
  }
  const headers = readHeaders(lines, isTolerant);
  const length = end.index + end[0].length;
  return { status: Number(status), minor: minor === "0" ? 0 : 1, headers, length };
}

function readHeaders(lines: readonly string[], isTolerant: boolean): Map<string, string> {
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(":");
    const written = line.slice(0, Math.max(0, colon)).toLowerCase();
    const name = isTolerant ? written.replace(/[ \t]+$/, "") : written;
    const value = trimBlanks(line.slice(colon + 1));
    const isTolerable = isTolerant && colon > 0 && !line.includes("\0");
    if (!isTolerable && (!token.test(name) || controls.test(value))) {
      throw new ProtocolError(`not a header: ${line.slice(0, 100)}`);
    }
    const before = headers.get(name);
    headers.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  return headers;
}

/** Whether the connection may serve another request after this response (RFC 9112, 9.3). */
export function keepsOpen({ minor, headers }: Head): boolean {
  const connection = headers.get("connection");
  if (connection === undefined) return minor === 1;
  const options = listOf(connection);
  return minor === 1 ? !options.includes("close") : options.includes("keep-alive");
}

/** Returns how long the server keeps an idle connection, in ms; null when it does not say. */
export function keepAliveOf({ headers }: Head): number | null {
  const kept = headers.get("keep-alive");
  if (kept === undefined) return null;
  const seconds = /(?:^|[\s,;])timeout=(\d{1,6})/i.exec(kept)?.[1];
  return seconds === undefined ? null : Number(seconds) * 1000;
}

/** Returns the members of a header that is a list, in lower case. */
export function listOf(value: string): string[] {
  return value.toLowerCase().split(",").map(trimBlanks).filter(Boolean);
}

/**
 * Removes the spaces and tabs around a value, and nothing else (RFC 9110, section 5.6.3): `trim`
 * removes VT and NBSP too, so that a value would be read that another program reads differently.
 */
function trimBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isBlank(text.charCodeAt(start))) start++;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

const isBlank = (code: number) => code === 0x20 || code === 0x09;
