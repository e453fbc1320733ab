/**
 * How much may still be read of the images, sounds and files of one request. Whatever is left out
 * counts by its bytes, or as the largest of its kind.
 */
export interface MediaWork {
  /** Chunks, boxes, pages, packets and frames: one takes some ten nanoseconds. */
  elements: number;
  /** Bytes of PDF documents to decompress. */
  inflatedBytes: number;
  /** Decompressed bytes that the size of the documents allows. */
  growth: number;
  /** Bytes of PDF documents that are outside of streams. */
  plainBytes: number;
  /** Streams of PDF documents. */
  streams: number;
}

/** Returns the allowance of one request. */
export function createMediaWork(): MediaWork {
  return {
    elements: 128_000,
    inflatedBytes: 8 * 1024 * 1024,
    growth: 512 * 1024,
    plainBytes: 4 * 1024 * 1024,
    streams: 20_000,
  };
}
