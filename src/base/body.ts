import type { BodyBudget } from "./body_budget.ts";
import { ApiError } from "./errors.ts";

/** Bodies up to this many bytes are read at once, into room that is set aside before they come. */
const smallBytes = 64 * 1024;

interface Reading {
  /** Most bytes that are read. */
  bytesMax: number;
  tooLarge: () => ApiError;
  /** Where a body that may be large takes its room. */
  bodies?: BodyBudget | undefined;
}

/**
 * Reads a body of at most `bytesMax`; else throws what `tooLarge` makes: at once where the request
 * says how long it is. Throws 400 `incomplete_body` where its sender breaks off, and 503 where
 * `bodies` has no room.
 */
export async function readBytes(
  request: Request,
  { bytesMax, tooLarge, bodies }: Reading,
): Promise<Uint8Array<ArrayBuffer>> {
  const length = declaredLength(request);
  if (length > bytesMax) throw tooLarge();
  try {
    // The server never reads on beyond a length that it has understood, and this is faster.
    if (length >= 0 && length <= smallBytes) return new Uint8Array(await request.arrayBuffer());
    if (!request.body) return new Uint8Array();
    const most = length < 0 ? bytesMax : length;
    const reader = request.body.getReader();
    // What is broken already cannot be cancelled, and need not be.
    const stop = () => void reader.cancel().catch(() => {});
    const take = bodies?.open(request, stop) ?? (() => {});
    return await readGrowing(reader, { most, tooLarge, take }).finally(stop);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    // Hardly anybody reads this; but it is no fault of ours, and not to be logged as one.
    throw new ApiError(400, {
      message: "The connection broke before the body's end.",
      code: "incomplete_body",
      cause: error,
    });
  }
}

/**
 * -1 where it is not said, or otherwise than once in digits: a header sent twice is "5, 5" here.
 */
function declaredLength(request: Request): number {
  const text = request.headers.get("content-length") ?? "";
  return /^\d+$/.test(text) ? Number(text) : -1;
}

/** Holds what has come, and at most as much again: what was only said to come costs nothing. */
async function readGrowing(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  { most, tooLarge, take }: {
    most: number;
    tooLarge: () => ApiError;
    take: (bytes: number) => void;
  },
): Promise<Uint8Array<ArrayBuffer>> {
  let bytes = new Uint8Array();
  let length = 0;
  for (;;) {
    const { value: chunk, done } = await reader.read();
    if (done) break;
    const needed = length + chunk.length;
    if (needed > most) throw tooLarge();
    if (needed > bytes.length) {
      const size = Math.max(needed, Math.min(2 * bytes.length, most));
      take(size - bytes.length);
      bytes = new Uint8Array(bytes.buffer.transfer(size));
    }
    bytes.set(chunk, length);
    length = needed;
  }
  // It may have been stopped, and then is not whole.
  take(0);
  return bytes.subarray(0, length);
}
