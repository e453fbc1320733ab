import { createHash } from "node:crypto";

/** Returns the hash of a script or a style for the Content-Security-Policy. */
export function scriptHash(text: string): string {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}
