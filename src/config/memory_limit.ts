import { chatBodyBytesMax } from "../base/limits.ts";

const mebibyte = 1024 * 1024;
/** What a process uses without large bodies, with room for its streams and caches. */
const restBytes = 256 * mebibyte;
/** A body of one byte takes up to eight: as text, parsed, and again for the upstream. */
const bytesPerByte = 8;
const bodiesBytesMost = 256 * mebibyte;

/**
 * How many bytes of large bodies a process holds at once by default: what fits into its memory.
 * Null: its memory is not known.
 */
export function defaultBodiesBytes(memoryBytes: number | null): number {
  if (memoryBytes === null) return bodiesBytesMost;
  const fitting = Math.floor((memoryBytes - restBytes) / bytesPerByte);
  return Math.min(bodiesBytesMost, Math.max(chatBodyBytesMax, fitting));
}
