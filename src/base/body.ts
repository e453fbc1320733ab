import type { BodyShare } from "./body_budget.ts";
import { ApiError } from "./errors.ts";

/** Bodies up to this many bytes are read at once, into a buffer allocated before they arrive. */
const smallBytes = 64 * 1024;

interface Reading {
  /** Most bytes that are read. */
  bytesMax: number;
  tooLarge: () => ApiError;
  /** The budget for bodies that may be large. */
  bodies?: BodyShare | undefined;
}

/**
 * Reads a body of at most `bytesMax`. Throws the error of `tooLarge` for a larger one, at once
 * where the request has a length; 400 `incomplete_body` when the sender disconnects, and 503 when
 * the budget is used up.
 */
export async function readBytes(
  request: Request,
  { bytesMax, tooLarge, bodies }: Reading,
): Promise<Uint8Array<ArrayBuffer>> {
  const length = declaredLength(request);
  if (length > bytesMax) throw tooLarge();
  try {
    // The server never reads beyond a valid length, and this is faster.
    if (length >= 0 && length <= smallBytes) return new Uint8Array(await request.arrayBuffer());
    if (!request.body) return new Uint8Array();
    const most = length < 0 ? bytesMax : length;
    const reader = request.body.getReader();
    // A broken body cannot be canceled, and need not be.
    const stop = () => void reader.cancel().catch(() => {});
    const take = bodies?.open(request, stop) ?? (() => {});
    return await readGrowing(reader, { most, tooLarge, take }).finally(stop);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    // The sender rarely reads this, but it must not be logged as our own error.
    throw new ApiError(400, {
      message: "The connection closed before the end of the body.",
      code: "incomplete_body",
      cause: error,
    });
  }
}

/**
 * The content length; -1 where it is absent or malformed, such as "5, 5" for a repeated header.
 */
function declaredLength(request: Request): number {
  const text = request.headers.get("content-length") ?? "";
  return /^\d+$/.test(text) ? Number(text) : -1;
}

/** Holds what has arrived and at most as much again: an announced length costs nothing. */
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
  // Reading may have been stopped, and the body is then incomplete.
  take(0);
  return bytes.subarray(0, length);
}
