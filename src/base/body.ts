import { ApiError } from "./errors.ts";

/**
 * Reads a body of at most `bytesMax`; else throws what `tooLarge` makes: at once where the request
 * says how long it is. Throws 400 `incomplete_body` where its sender breaks off.
 */
export async function readBytes(
  request: Request,
  bytesMax: number,
  tooLarge: () => ApiError,
): Promise<Uint8Array<ArrayBuffer>> {
  const length = declaredLength(request);
  if (length > bytesMax) throw tooLarge();
  try {
    // The server never reads on beyond a length that it has understood, and this is faster.
    if (length >= 0) return new Uint8Array(await request.arrayBuffer());
    return request.body ? await readCounted(request.body, bytesMax, tooLarge) : new Uint8Array();
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

/** -1 where it is not said, or otherwise than once in digits: a header sent twice is "5, 5" here. */
function declaredLength(request: Request): number {
  const text = request.headers.get("content-length") ?? "";
  return /^\d+$/.test(text) ? Number(text) : -1;
}

async function readCounted(
  body: ReadableStream<Uint8Array>,
  bytesMax: number,
  tooLarge: () => ApiError,
): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > bytesMax) throw tooLarge();
    chunks.push(chunk);
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}
