import { latin1Of } from "../base/latin1.ts";

// ISO 14496-1 and 14496-3

/** Hertz, by the index in the configuration of AAC. */
const rates = [
  ...[96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000],
  ...[12_000, 11_025, 8_000, 7_350],
];
/** AAC of MPEG-4 and of MPEG-2, by the object type in a decoder's configuration. */
const aacTypes = new Set([0x40, 0x66, 0x67, 0x68]);
/** AAC-LC, and both forms of HE-AAC. */
const aacObjects = new Set([2, 5, 29]);
const [streamTag, configTag, specificTag] = [3, 4, 5];
/** Bytes of a decoder's configuration before the codec's own. */
const configBytes = 13;

/**
 * The rate of AAC's core decoder in a sample description: of HE-AAC, half of the sound's. Where
 * there are several configurations, that of the slowest. Null for another codec.
 */
export function aacRate(description: Uint8Array): number | null {
  const text = latin1Of(description);
  let slowest: number | null = null;
  let searched = 0;
  for (let at = text.indexOf("esds"); at >= 0; at = text.indexOf("esds", at + 4)) {
    if (++searched > 8) return null;
    const rate = rateIn(description.subarray(at + 8, at + descriptorBytesMax));
    if (rate === null) return null;
    slowest = Math.min(slowest ?? rate, rate);
  }
  return slowest;
}

/** Descriptors are shorter. */
const descriptorBytesMax = 512;

function rateIn(descriptors: Uint8Array): number | null {
  const stream = contentAt(descriptors, 0, streamTag);
  if (stream === null) return null;
  // An id and flags.
  const config = contentAt(descriptors, stream + 3, configTag);
  if (config === null || !aacTypes.has(descriptors[config] ?? 0)) return null;
  const own = contentAt(descriptors, config + configBytes, specificTag);
  if (own !== null) return rateAt(descriptors, own);
  // Some writers leave fields out: any bytes may be the codec's own.
  let slowest: number | null = null;
  for (let at = config + 1; at < descriptors.length; at++) {
    const content = contentAt(descriptors, at, specificTag);
    const rate = content === null ? null : rateAt(descriptors, content);
    if (rate !== null) slowest = Math.min(slowest ?? rate, rate);
  }
  return slowest;
}

/** Where the content of a descriptor begins; null where there is none with this tag. */
function contentAt(descriptors: Uint8Array, at: number, tag: number): number | null {
  if (descriptors[at] !== tag) return null;
  let content = at + 1;
  while (((descriptors[content] ?? 0) & 0x80) !== 0) content++;
  return content + 1;
}

function rateAt(descriptors: Uint8Array, at: number): number | null {
  const [first = 0, second = 0] = descriptors.subarray(at, at + 2);
  if (!aacObjects.has(first >> 3)) return null;
  return rates[((first & 7) << 1) | (second >> 7)] ?? null;
}
