import { isIP } from "node:net";
import { z } from "zod";

/** Ranges such as `10.0.0.0/8`, separated by commas or spaces, as a list. */
export const cidrList = z.string().transform((text) => text.split(/[\s,]+/).filter(Boolean)).refine(
  (list) => list.every(isCidr),
  { error: "must be ranges such as 10.0.0.0/8 or fd00::/8, separated by commas" },
);

function isCidr(text: string): boolean {
  const [net = "", prefix = "", more] = text.split("/");
  const family = isIP(net);
  const bits = family === 6 ? 128 : 32;
  return more === undefined && family !== 0 && /^\d{1,3}$/.test(prefix) && Number(prefix) <= bits;
}
