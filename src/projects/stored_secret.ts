import { z } from "zod";
import { badRequest } from "../base/errors.ts";
import { isMask, maskFault } from "../base/secret_mask.ts";
import type { Key } from "../store/kv.ts";
import type { Sealed, Secrets } from "../store/secrets.ts";

const storedSecretSchema = z.strictObject({ set: z.literal(true) }).meta({
  id: "StoredSecret",
  description: "A secret that is stored. It is never shown; in a change, it stays as it is.",
});
/** What shows a stored secret, and keeps it in a change. */
type StoredSecret = z.output<typeof storedSecretSchema>;

/** A stored secret as it is shown; null where there is none. */
export const shownSecretSchema = storedSecretSchema.nullable();

/** The names of settings that are secrets. */
export const secretNames: ReadonlySet<string> = new Set(["apiKey", "secretKey", "webhookSecret"]);

/** Returns what is shown of a secret. */
export function showSecret<T extends Sealed | null>(
  sealed: T,
): StoredSecret | (T extends null ? null : never);
export function showSecret(sealed: Sealed | null): StoredSecret | null {
  return sealed && { set: true };
}

/** Text that is no mask: nobody can store what stands in the place of a secret. */
export const noMask = <T extends z.ZodType<string>>(text: T) =>
  text.refine((given) => !isMask(given), { error: maskFault });

/**
 * The schema of a secret in a setting: its text, as `text` allows it; in a change also what shows
 * the stored one, which keeps it.
 */
export const secretSetting = <T extends z.ZodType<string>>(text: T) =>
  z.union([text, storedSecretSchema], {
    error: 'must be the secret as text, or {"set": true} to keep the stored one',
  });

/**
 * Encrypts a given secret for its row, or returns the stored one where it stays. Throws 400, which
 * names `param`, where none is stored, and without `SECRETS_KEY`.
 */
export async function sealOrKeep(
  secrets: Pick<Secrets, "seal">,
  given: string | StoredSecret,
  { stored, place, param }: { stored: Sealed | null; place: Key; param: string },
): Promise<Sealed> {
  if (typeof given === "string") return await secrets.seal(given, place);
  if (stored) return stored;
  throw badRequest(
    param,
    `'${param}' is {"set": true}, which keeps a stored secret, but none is stored: send the secret.`,
  );
}
