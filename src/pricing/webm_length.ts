import { viewOf } from "./image_size.ts";
import type { MediaWork } from "./media_work.ts";
import { opusPacketMs } from "./opus_packet.ts";

// https://www.rfc-editor.org/rfc/rfc9559

const ebml = 0x1a45dfa3;
const [segment, info, tracks, track] = [0x18538067, 0x1549a966, 0x1654ae6b, 0xae] as const;
const [cluster, group] = [0x1f43b675, 0xa0] as const;
const [codec, timestamp, simpleBlock, block] = [0x86, 0xe7, 0xa3, 0xa1] as const;
const [timestampScale, duration] = [0x2ad7b1, 0x4489] as const;
/** The file itself. */
const file = 0;
const fillers = [0xec, 0xbf];

/** The elements that each element may have. A decoder may take another one for damage. */
const children = new Map<number, ReadonlySet<number>>([
  [file, new Set([ebml, segment, ...fillers])],
  [
    segment,
    new Set([
      ...[info, tracks, cluster, ...fillers],
      // Where elements are, when a sound can be cut, and what people call it.
      ...[0x114d9b74, 0x1c53bb6b, 0x1254c367, 0x1043a770, 0x1941a469],
    ]),
  ],
  [
    info,
    new Set([
      ...[timestampScale, duration, ...fillers],
      ...[0x73a4, 0x7384, 0x4461, 0x7ba9, 0x4d80, 0x5741],
    ]),
  ],
  [tracks, new Set([track, ...fillers])],
  [
    track,
    new Set([
      ...[codec, 0xd7, 0x73c5, 0x83, 0xb9, 0x88, 0x55aa, 0x9c, 0x6de7, 0x6df8, 0x23e383],
      ...[0x55ee, 0x536e, 0x22b59c, 0x22b59d, 0x63a2, 0x258688, 0x56aa, 0x56bb, 0xe1, ...fillers],
    ]),
  ],
  [cluster, new Set([timestamp, simpleBlock, group, 0xa7, 0xab, ...fillers])],
  [group, new Set([block, 0x9b, 0xfb, 0xfa, 0x75a2, ...fillers])],
]);
const opus = "A_OPUS";

/**
 * The seconds of a WebM file of Opus alone: of its packets, by its own clock, and as its header
 * states, whichever is longest. Bytes that are left when the allowance is used up count as sound of
 * `slowest` bytes a second. Null for another file, and for one that is damaged, laced, compressed
 * or has elements that are not usual.
 */
export function webmSeconds(
  bytes: Uint8Array,
  { work, slowest }: { work: MediaWork; slowest: number },
): number | null {
  const reader = new ElementReader(bytes);
  const seconds = { packets: 0, clock: 0, last: 0, stated: 0, scale: 1_000_000 };
  let [begun, isOpus] = [0, false];
  while (reader.at < bytes.length && work.elements-- > 0) {
    if (!reader.next() || (reader.isFirst && reader.id !== ebml)) return null;
    const { id, from, end } = reader;
    if (id === codec) {
      if (!reader.isText(opus)) return null;
      isOpus = true;
    } else if (id === timestamp || id === timestampScale) {
      if (end - from > 8) return null;
      if (id === timestamp) begun = reader.number();
      else seconds.scale = Math.max(seconds.scale, reader.number());
    } else if (id === duration) seconds.stated = Math.max(seconds.stated, reader.float());
    else if (id === simpleBlock || id === block) {
      const content = from + lengthOfNumber(bytes[from] ?? 0) + 3;
      if (!isOpus || content >= end || ((bytes[content - 1] ?? 0) & 0x06) !== 0) return null;
      const ms = opusPacketMs(bytes, content);
      seconds.packets += ms / 1_000;
      // Relative to the cluster, signed.
      const offset = ((((bytes[content - 3] ?? 0) << 8) | (bytes[content - 2] ?? 0)) << 16) >> 16;
      seconds.clock = Math.max(seconds.clock, begun + offset);
      seconds.last = ms / 1_000;
    }
  }
  if (seconds.packets === 0) return null;
  const ticks = seconds.scale / 1e9;
  const rest = (bytes.length - reader.at) / slowest;
  return Math.max(
    seconds.packets,
    seconds.clock * ticks + seconds.last,
    seconds.stated * ticks,
  ) + rest;
}

/** An element that has others. */
interface Parent {
  may: ReadonlySet<number>;
  /** Where it ends: one of unknown length, where the element around it does. */
  end: number;
  isOpen: boolean;
}

/** Reads one element after the other, and goes into those that have others. */
class ElementReader {
  /** Where the next element begins. */
  at = 0;
  id = 0;
  /** Where the element's content begins, and where it ends. */
  from = 0;
  end = 0;
  isFirst = false;
  readonly #bytes: Uint8Array;
  readonly #around: Parent[] = [];
  #parent: Parent;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#parent = { may: mayHave(file), end: bytes.length, isOpen: false };
  }

  /** Reads an element. False where it is damaged, or none that may be here. */
  next(): boolean {
    const bytes = this.#bytes;
    this.isFirst = this.at === 0;
    while (this.at >= this.#parent.end && this.#leave());
    const idEnd = this.at + lengthOfNumber(bytes[this.at] ?? 0);
    const first = bytes[idEnd] ?? 0;
    const sizeLength = lengthOfNumber(first);
    const from = idEnd + sizeLength;
    if (idEnd > this.at + 4 || sizeLength > 8 || from > bytes.length) return false;
    const id = this.#numberIn(this.at, idEnd);
    const head = first & ((1 << (8 - sizeLength)) - 1);
    const size = sizeLength === 1
      ? head
      : head * 2 ** (8 * (sizeLength - 1)) + this.#numberIn(idEnd + 1, from);
    while (!this.#parent.may.has(id)) if (!this.#parent.isOpen || !this.#leave()) return false;
    const isOpen = size === 2 ** (7 * sizeLength) - 1;
    if (isOpen && id !== segment && id !== cluster) return false;
    const { end: endAround } = this.#parent;
    const end = isOpen ? endAround : from + size;
    if (end > endAround) return false;
    const may = children.get(id);
    if (may) {
      this.#around.push(this.#parent);
      this.#parent = { may, end, isOpen };
    }
    this.at = may ? from : end;
    this.id = id;
    this.from = from;
    this.end = end;
    return true;
  }

  number(): number {
    return this.#numberIn(this.from, this.end);
  }

  float(): number {
    const view = viewOf(this.#bytes);
    const length = this.end - this.from;
    const value = length === 4
      ? view.getFloat32(this.from)
      : length === 8
      ? view.getFloat64(this.from)
      : 0;
    return value > 0 && value < 1e15 ? value : 0;
  }

  isText(text: string): boolean {
    if (this.end - this.from !== text.length) return false;
    for (let at = 0; at < text.length; at++) {
      if (this.#bytes[this.from + at] !== text.charCodeAt(at)) return false;
    }
    return true;
  }

  /** Goes to the parent's parent. False where there is none. */
  #leave(): boolean {
    const around = this.#around.pop();
    if (around) this.#parent = around;
    return around !== undefined;
  }

  #numberIn(from: number, end: number): number {
    let number = 0;
    for (let at = from; at < end; at++) number = number * 256 + (this.#bytes[at] ?? 0);
    return number;
  }
}

function mayHave(id: number): ReadonlySet<number> {
  return children.get(id) ?? new Set();
}

/** The length of a number, by the leading zeros of its first byte; 9 where there is none. */
function lengthOfNumber(first: number): number {
  return first === 0 ? 9 : Math.clz32(first) - 23;
}
