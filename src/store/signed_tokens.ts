import { fromBase64Url, toBase64Url } from "../base/base64.ts";
import type { Secrets } from "./secrets.ts";

/** A text that no one else can create: a JSON value and its HMAC-SHA-256, in base64url. */
export interface SignedTokens {
  make(value: unknown): Promise<string>;
  /** Returns a token's value; null when the token is forged or damaged. */
  read(token: string): Promise<unknown>;
}

const encoder = new TextEncoder();

/** Creates tokens for one purpose: a token for another is rejected. */
export async function createSignedTokens(secrets: Secrets, purpose: string): Promise<SignedTokens> {
  const signer = await secrets.signer(purpose);
  return {
    async make(value) {
      const payload = toBase64Url(encoder.encode(JSON.stringify(value)));
      return `${payload}.${toBase64Url(await signer.sign(payload))}`;
    },
    async read(token) {
      const [payload = "", signature = "", more] = token.split(".");
      const [payloadBytes, signatureBytes] = [fromBase64Url(payload), fromBase64Url(signature)];
      if (!payloadBytes || !signatureBytes || more !== undefined) return null;
      if (!(await signer.verify(payload, signatureBytes))) return null;
      return JSON.parse(new TextDecoder().decode(payloadBytes));
    },
  };
}
