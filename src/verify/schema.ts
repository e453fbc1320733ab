import { Buffer } from "node:buffer";
import { z } from "zod";
import { badCursor } from "../base/errors.ts";
import { type Json } from "../base/json.ts";
import { decodeUtf8 } from "../base/utf8.ts";

const cursorCharsMax = 32 * 1024;

/** The current scan, and its position. */
const positionSchema = z.strictObject({ scan: z.string(), place: z.json().nullable() });
/** The current scan, and its position. */
export interface VerifyPosition {
  scan: string;
  place: Json | null;
}

/** Encodes a position as a cursor. */
export function encodeVerifyCursor(position: VerifyPosition): string {
  return Buffer.from(JSON.stringify(position)).toString("base64url");
}

/** Decodes a cursor. Throws 400 for an invalid one. */
export function decodeVerifyCursor(cursor: string): VerifyPosition {
  try {
    if (cursor.length > cursorCharsMax) throw new RangeError("too long");
    const text = decodeUtf8(Buffer.from(cursor, "base64url"));
    return positionSchema.parse(JSON.parse(text ?? "")) as VerifyPosition;
  } catch {
    throw badCursor();
  }
}
