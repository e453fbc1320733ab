import { createHash } from "node:crypto";
import { z } from "zod";

/** An e-mail address as a person typed it. */
export const emailSchema = z.email({ error: "must be an e-mail address" }).max(254);

/**
 * A hash of who reads an address: without what follows a plus sign, since many servers deliver that
 * to one inbox.
 */
export function inboxOf(email: string): string {
  const [, name = "", domain = ""] = /^([^+@]*)[^@]*@(.*)$/.exec(email.toLowerCase()) ?? [];
  return createHash("sha256").update(`${name}@${domain}`).digest("hex").slice(0, 32);
}

/** A hash of an address. */
export function hashOfEmail(email: string): string {
  return createHash("sha256").update(email.toLowerCase()).digest("base64url");
}

/** Returns an address as its owner recognizes it: `a•••@example.com`. */
export function shortenEmail(email: string): string {
  const [, first = "", domain = ""] = /^(.).*@(.*)$/u.exec(email) ?? [];
  return `${first}•••@${domain}`;
}
