import { hash } from "node:crypto";

/** The hash by which a sealed file and the service agree on an entry: of its stored JSON text. */
export function lineHash(line: string | Uint8Array): string {
  return hash("sha256", line, "hex").slice(0, 32);
}
