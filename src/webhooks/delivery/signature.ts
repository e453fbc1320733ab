import { Buffer } from "node:buffer";
import { createHmac } from "node:crypto";

const standardPrefix = "whsec_";

/**
 * Returns `X-Service-Signature`: hex HMAC-SHA256 of the raw body, keyed with the secret as it was
 * shown.
 */
export function serviceSignature(secret: string, body: string): string {
  return createHmac("sha256", secret).update(body).digest("hex");
}

/**
 * Returns `webhook-signature` of Standard Webhooks (https://www.standardwebhooks.com, v1): base64
 * HMAC-SHA256 of `id.timestamp.body` for each secret, newest first. A secret with the prefix
 * `whsec_` stands for the bytes that the rest encodes in base64.
 */
export function standardSignatures(
  secrets: readonly string[],
  { id, timestamp, body }: { id: string; timestamp: number; body: string },
): string {
  const signed = `${id}.${timestamp}.${body}`;
  return secrets.map((secret) => {
    const key = secret.startsWith(standardPrefix)
      ? Buffer.from(secret.slice(standardPrefix.length), "base64")
      : secret;
    return `v1,${createHmac("sha256", key).update(signed).digest("base64")}`;
  }).join(" ");
}

/** Generates a secret: the prefix and 32 random bytes in base64. */
export function newSecret(random: Uint8Array): string {
  return standardPrefix + Buffer.from(random).toString("base64");
}
