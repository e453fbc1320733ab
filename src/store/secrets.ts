import { ApiError } from "../base/errors.ts";
import type { Key } from "./kv.ts";
import { keyText } from "./batch.ts";

/** A secret as it is stored: AES-256-GCM, nonce before ciphertext, in base64. */
export type Sealed = { sealed: string };

/** Keeps secrets out of the store in the clear, and derives the keys that sign links. */
export interface Secrets {
  /** Encrypts for one place: what is moved to another key does not open. Throws 400 without a key. */
  seal(secret: string, place: Key): Promise<Sealed>;
  /** The secret again. Throws when the key or the place is another. */
  open(sealed: Sealed, place: Key): Promise<string>;
  /** A key for HMAC-SHA-256, for one purpose; by HKDF-SHA-256 (RFC 5869). */
  signingKey(purpose: string): Promise<CryptoKey>;
}

const encoder = new TextEncoder();
const nonceBytes = 12;

/** Secrets under a key of 32 bytes in base64; without one, storing a secret is refused. */
export async function createSecrets(
  secretsKey: string | null,
  randomBytes: (length: number) => Uint8Array<ArrayBuffer>,
): Promise<Secrets> {
  const raw = secretsKey ? decodeBase64(secretsKey) : randomBytes(32);
  const root = await crypto.subtle.importKey("raw", raw, "HKDF", false, ["deriveKey"]);
  const derive = (
    purpose: string,
    algorithm: AesKeyGenParams | HmacKeyGenParams,
    uses: KeyUsage[],
  ) =>
    crypto.subtle.deriveKey(
      {
        name: "HKDF",
        hash: "SHA-256",
        salt: new Uint8Array(),
        info: encoder.encode(`farebox ${purpose}`),
      },
      root,
      algorithm,
      false,
      uses,
    );
  const aes = await derive("stored secrets", { name: "AES-GCM", length: 256 }, [
    "encrypt",
    "decrypt",
  ]);
  const forPlace = (iv: Uint8Array<ArrayBuffer>, place: Key): AesGcmParams => ({
    name: "AES-GCM",
    iv,
    additionalData: encoder.encode(keyText(place)),
  });
  return {
    async seal(secret, place) {
      if (!secretsKey) {
        throw new ApiError(400, {
          message: "This server has no SECRETS_KEY, so it stores no secrets.",
          code: "secrets_key_missing",
        });
      }
      const nonce = randomBytes(nonceBytes);
      const text = await crypto.subtle.encrypt(forPlace(nonce, place), aes, encoder.encode(secret));
      return { sealed: encodeBase64(new Uint8Array([...nonce, ...new Uint8Array(text)])) };
    },
    async open({ sealed }, place) {
      const bytes = decodeBase64(sealed);
      const parameters = forPlace(bytes.slice(0, nonceBytes), place);
      const text = await crypto.subtle.decrypt(parameters, aes, bytes.slice(nonceBytes));
      return new TextDecoder().decode(text);
    },
    signingKey: (purpose) =>
      derive(purpose, { name: "HMAC", hash: "SHA-256", length: 256 }, ["sign", "verify"]),
  };
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

function encodeBase64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}
