import { createHash } from "node:crypto";

const keptNameCharsMax = 256;

/**
 * What an upstream's id of a response or an item is called in keys and rows: the id itself, or the
 * hash of a long one. A name is its own name.
 */
export const keptName = (id: string): string =>
  id.length <= keptNameCharsMax ? id : `sha256_${createHash("sha256").update(id).digest("hex")}`;
