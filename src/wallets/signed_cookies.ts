import type { Clock } from "../base/clock.ts";
import type { Secrets } from "../store/secrets.ts";
import { createSignedTokens, type SignedTokens } from "../store/signed_tokens.ts";

/** The content of a signed cookie. */
interface SignedCookie {
  personId: string;
  epoch: number;
}

/**
 * Reads the cookies of 0.9.0, which were signed by `SECRETS_KEY`: each is valid while a key that
 * signed it is known, for 400 days. Version 1.1 may drop it.
 */
interface SignedCookies {
  /** Reads the cookie of a device with a wallet; null for any other text. */
  device(text: string): Promise<SignedCookie | null>;
  /** Reads the cookie of a device that had not decided yet; null for any other text. */
  newcomer(text: string): Promise<SignedCookie | null>;
}

/** Creates the reader. */
export async function createSignedCookies(
  secrets: Secrets,
  { clock, lifetimeMs }: { clock: Pick<Clock, "now">; lifetimeMs: number },
): Promise<SignedCookies> {
  const devices = await createSignedTokens(secrets, "device cookies");
  const newcomers = await createSignedTokens(secrets, "newcomers' cookies");
  async function read(tokens: SignedTokens, text: string): Promise<SignedCookie | null> {
    const value = await tokens.read(text);
    if (!Array.isArray(value)) return null;
    const [personId, issuedAt, epoch] = value;
    return issuedAt + lifetimeMs > clock.now() ? { personId, epoch } : null;
  }
  return {
    device: (text) => read(devices, text),
    newcomer: (text) => read(newcomers, text),
  };
}
