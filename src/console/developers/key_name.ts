import type { ApiKey } from "../../projects/schema.ts";

/** Returns how a key is called where it is chosen. */
export function nameOfKey(key: Pick<ApiKey, "name" | "suffix"> | undefined): string {
  if (!key) return "that no longer exists";
  return key.name === "" ? `…${key.suffix}` : `${key.name} (…${key.suffix})`;
}
