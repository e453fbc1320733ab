import { cookieValue } from "../base/request.ts";
import type { Secrets } from "../store/secrets.ts";
import { createTokens } from "./token.ts";

/** Recognises a person who comes back on the same device. */
export interface Devices {
  /** The person whose device sent this, or null. */
  personOf(request: Request): Promise<string | null>;
  /** The cookie by which this device is this person's from now on. */
  remember(personId: string): Promise<string>;
  /** The cookie that ends that. */
  readonly forgotten: string;
}

/** As long as browsers keep a cookie at all (RFC 6265bis: 400 days). */
const lifetimeMs = 400 * 24 * 60 * 60 * 1000;

/**
 * A signed, http-only cookie. `Lax`, because a link in a chat comes from another site; what it asks
 * for is posted by forms, which are refused from there.
 */
export async function createDevices(
  { baseUrl, secrets, now }: { baseUrl: string; secrets: Secrets; now: () => number },
): Promise<Devices> {
  const tokens = await createTokens(secrets, "device cookies");
  const secure = baseUrl.startsWith("https:");
  // The prefix keeps other hosts of the same site from setting it; it asks for https.
  const name = secure ? "__Host-farebox_wallet" : "farebox_wallet";
  const cookie = (value: string, maxAge: number) =>
    `${name}=${value}; Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Lax${
      secure ? "; Secure" : ""
    }`;
  return {
    async personOf(request) {
      const sent = cookieValue(request, name);
      const value = sent ? await tokens.read(sent) : null;
      if (!Array.isArray(value)) return null;
      const [personId, issuedAt] = value;
      return issuedAt + lifetimeMs > now() ? personId : null;
    },
    remember: async (personId) => cookie(await tokens.make([personId, now()]), lifetimeMs / 1000),
    forgotten: cookie("", 0),
  };
}
