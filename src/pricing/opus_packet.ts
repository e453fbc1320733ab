/** Milliseconds of a frame by the two lowest bits of its configuration: RFC 6716, 3.1. */
const silkFrames = [10, 20, 40, 60];
const celtFrames = [2.5, 5, 10, 20];
const packetMsMax = 120;

/** Milliseconds of the Opus packet that begins here. */
export function opusPacketMs(bytes: Uint8Array, at: number): number {
  const head = bytes[at] ?? 0;
  const configuration = head >> 3;
  const frames = configuration < 12 ? silkFrames : celtFrames;
  // The hybrid modes are those of SILK with 10 and 20 ms.
  const index = configuration >= 12 && configuration < 16
    ? 2 + (configuration & 1)
    : configuration & 3;
  const code = head & 3;
  const count = code === 0 ? 1 : code < 3 ? 2 : (bytes[at + 1] ?? 0) & 63;
  return Math.min(packetMsMax, count * (frames[index] ?? packetMsMax));
}
