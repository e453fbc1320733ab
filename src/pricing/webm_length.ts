import { opusPacketMs } from "./opus_length.ts";

// https://www.rfc-editor.org/rfc/rfc9559

const [segment, cluster, tracks, track, group] = [
  ...[0x18538067, 0x1f43b675, 0x1654ae6b, 0xae, 0xa0],
];
const parents = new Set([segment, cluster, tracks, track, group]);
const [codec, timestamp, simpleBlock, block] = [0x86, 0xe7, 0xa3, 0xa1];
const ebml = 0x1a45dfa3;

interface WebmElement {
  id: number;
  from: number;
  end: number;
}

/**
 * The seconds of a WebM file of Opus alone: of its packets, and by its own clock in milliseconds,
 * whichever is longer. Null for another file, and for one that is damaged or laced.
 */
export function webmSeconds(bytes: Uint8Array): number | null {
  let [ms, clock, begun] = [0, 0, 0];
  let isOpus = false;
  for (let at = 0; at < bytes.length;) {
    const element = readElement(bytes, at);
    if (!element || (at === 0 && element.id !== ebml)) return null;
    const { id, from, end } = element;
    at = parents.has(id) ? from : end;
    if (parents.has(id)) continue;
    if (end > bytes.length) return null;
    if (id === codec) {
      if (new TextDecoder("latin1").decode(bytes.subarray(from, end)) !== "A_OPUS") return null;
      isOpus = true;
    } else if (id === timestamp) begun = numberIn(bytes, from, end);
    else if (id === simpleBlock || id === block) {
      const content = from + lengthOfNumber(bytes[from] ?? 0) + 3;
      if (!isOpus || content >= end || ((bytes[content - 1] ?? 0) & 0x06) !== 0) return null;
      const packet = opusPacketMs(bytes, content);
      ms += packet;
      // Relative to the cluster, signed.
      const offset = ((numberIn(bytes, content - 3, content - 1) << 16) >> 16) + packet;
      clock = Math.max(clock, begun + offset);
    }
  }
  return ms === 0 ? null : Math.max(ms, clock) / 1_000;
}

function readElement(bytes: Uint8Array, at: number): WebmElement | null {
  const idLength = lengthOfNumber(bytes[at] ?? 0);
  const sizeAt = at + idLength;
  const first = bytes[sizeAt] ?? 0;
  const sizeLength = lengthOfNumber(first);
  const from = sizeAt + sizeLength;
  if (idLength > 4 || sizeLength > 8 || from > bytes.length) return null;
  const rest = numberIn(bytes, sizeAt + 1, from);
  const size = (first & ((1 << (8 - sizeLength)) - 1)) * 2 ** (8 * (sizeLength - 1)) + rest;
  return { id: numberIn(bytes, at, sizeAt), from, end: from + size };
}

/** The length of a number, by the leading zeros of its first byte; 9 where there is none. */
function lengthOfNumber(first: number): number {
  return first === 0 ? 9 : Math.clz32(first) - 23;
}

function numberIn(bytes: Uint8Array, from: number, end: number): number {
  let number = 0;
  for (let at = from; at < end; at++) number = number * 256 + (bytes[at] ?? 0);
  return number;
}
