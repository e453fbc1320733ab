import { latin1Of } from "../base/latin1.ts";
import { codeOf, viewOf } from "./image_size.ts";
import type { MediaWork } from "./media_work.ts";
import { opusPacketMs } from "./opus_packet.ts";

const samplesPerSecond = 48_000;
const [pageCode, headBegin, headEnd] = ["OggS", "Opus", "Head"].map(codeOf);
const headerBytes = 27;
const isContinued = 1;
const isFirst = 2;

/**
 * The seconds of an Ogg file of Opus alone: of the packets of all its streams, and by its own
 * clock, whichever is longer. Bytes that are left when the allowance is used up count as sound of
 * `slowest` bytes a second. Null for another file, for one that is damaged, and for one with pages
 * inside of pages, which a decoder may find. RFC 3533, RFC 7845.
 */
export function oggSeconds(
  bytes: Uint8Array,
  { work, slowest }: { work: MediaWork; slowest: number },
): number | null {
  const view = viewOf(bytes);
  let [ms, samples, packets, pages] = [0, 0, 0, 0];
  let at = 0;
  while (at < bytes.length && work.elements > 0) {
    if (at + headerBytes > bytes.length || view.getUint32(at) !== pageCode) return null;
    const flags = view.getUint8(at + 5);
    const from = at + headerBytes + view.getUint8(at + 26);
    if (from > bytes.length) return null;
    let isStart = (flags & isContinued) === 0;
    let packet = from;
    for (let segment = at + headerBytes; segment < from; segment++) {
      const length = bytes[segment] ?? 0;
      // The first two packets are headers.
      if (isStart && length > 0 && packets++ >= 2) ms += opusPacketMs(bytes, packet);
      isStart = length < 255;
      packet += length;
    }
    if (packet > bytes.length) return null;
    const isHead = from + 8 <= packet && view.getUint32(from) === headBegin &&
      view.getUint32(from + 4) === headEnd;
    if ((flags & isFirst) !== 0 && !isHead) return null;
    const position = view.getInt32(at + 10, true) * 2 ** 32 + view.getUint32(at + 6, true);
    samples = Math.max(samples, position);
    work.elements -= 1 + (from - at - headerBytes);
    pages++;
    at = packet;
  }
  if (ms === 0 || pages !== pagesIn(bytes.subarray(0, at))) return null;
  return Math.max(ms / 1_000, samples / samplesPerSecond) + (bytes.length - at) / slowest;
}

/** Bytes that are searched at once: a longer text costs more to allocate than to search. */
const searchedAtOnce = 64 * 1024;

/** How often a page seems to begin. A search in a text is faster than one in bytes. */
function pagesIn(bytes: Uint8Array): number {
  let pages = 0;
  for (let at = 0; at < bytes.length; at += searchedAtOnce) {
    const part = bytes.subarray(at, at + searchedAtOnce + 3);
    for (const _ of latin1Of(part).matchAll(/OggS/g)) pages++;
  }
  return pages;
}
