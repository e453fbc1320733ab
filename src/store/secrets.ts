import { ApiError } from "../base/errors.ts";
import type { Secret } from "../base/secret.ts";
import type { Key } from "./kv.ts";
import { keyText } from "./batch.ts";

/** A stored secret: AES-256-GCM, nonce before ciphertext, in base64. */
export type Sealed = { sealed: string };

/** Signs and verifies texts for one purpose. */
interface Signer {
  sign(text: string): Promise<Uint8Array>;
  verify(text: string, signature: Uint8Array<ArrayBuffer>): Promise<boolean>;
}

/** Encrypts secrets for the store, and derives the keys that sign links. */
export interface Secrets {
  /**
   * Encrypts a secret for one row: moved to another key, it does not decrypt. Throws 400 without a
   * key.
   */
  seal(secret: string, place: Key): Promise<Sealed>;
  /** Decrypts a secret. Throws 503 `secret_unreadable` when no key fits, or the row is another. */
  open(sealed: Sealed, place: Key): Promise<string>;
  /** Encrypts a secret again with the first key; null when it already is. Throws as `open`. */
  reseal(sealed: Sealed, place: Key): Promise<Sealed | null>;
  /**
   * Returns an HMAC-SHA-256 signer for one purpose, with a key derived by HKDF-SHA-256 (RFC 5869).
   */
  signer(purpose: string): Promise<Signer>;
}

const encoder = new TextEncoder();
const nonceBytes = 12;

/** The operations of one key. */
interface Opened {
  aes: CryptoKey;
  hmac(purpose: string): Promise<CryptoKey>;
}

/**
 * Creates secrets with keys of 32 bytes in base64: the first one encrypts and signs, all of them
 * decrypt and verify, so that keys can be rotated. Without any, storing a secret is refused.
 */
export async function createSecrets(
  keys: readonly Secret[],
  randomBytes: (length: number) => Uint8Array<ArrayBuffer>,
): Promise<Secrets> {
  const raw = keys.length > 0
    ? keys.map((key) => Uint8Array.fromBase64(key.reveal()))
    : [randomBytes(32)];
  const [newest, ...others] = await Promise.all(raw.map(openKey));
  if (!newest) throw new Error("there is always one key");
  const first = newest;
  const forPlace = (iv: Uint8Array<ArrayBuffer>, place: Key): AesGcmParams => ({
    name: "AES-GCM",
    iv,
    additionalData: encoder.encode(keyText(place)),
  });

  async function seal(secret: string, place: Key): Promise<Sealed> {
    const nonce = randomBytes(nonceBytes);
    const bytes = encoder.encode(secret);
    const text = await crypto.subtle.encrypt(forPlace(nonce, place), first.aes, bytes);
    return { sealed: new Uint8Array([...nonce, ...new Uint8Array(text)]).toBase64() };
  }

  async function openWith({ aes }: Opened, { sealed }: Sealed, place: Key): Promise<string> {
    const bytes = Uint8Array.fromBase64(sealed);
    const parameters = forPlace(bytes.slice(0, nonceBytes), place);
    const text = await crypto.subtle.decrypt(parameters, aes, bytes.slice(nonceBytes));
    return new TextDecoder().decode(text);
  }

  return {
    async seal(secret, place) {
      if (keys.length > 0) return await seal(secret, place);
      throw new ApiError(400, {
        message: "This server has no SECRETS_KEY, so it cannot store secrets.",
        code: "secrets_key_missing",
      });
    },
    open: (sealed, place) =>
      Promise.any([first, ...others].map((key) => openWith(key, sealed, place)))
        .catch((error) => {
          throw unreadable(place, error);
        }),
    async reseal(sealed, place) {
      const isCurrent = await openWith(first, sealed, place).then(() => true, () => false);
      if (isCurrent) return null;
      const opened = await Promise.any(others.map((key) => openWith(key, sealed, place)))
        .catch((error) => {
          throw unreadable(place, error);
        });
      return await seal(opened, place);
    },
    async signer(purpose) {
      const [own, ...older] = await Promise.all(
        [first, ...others].map((key) => key.hmac(purpose)),
      );
      if (!own) throw new Error("there is always one key");
      return {
        sign: async (text) =>
          new Uint8Array(await crypto.subtle.sign("HMAC", own, encoder.encode(text))),
        async verify(text, signature) {
          for (const key of [own, ...older]) {
            if (await crypto.subtle.verify("HMAC", key, signature, encoder.encode(text))) {
              return true;
            }
          }
          return false;
        },
      };
    },
  };
}

/**
 * 503: no key decrypts a secret. The caller can do nothing about it, and the operator can: it is no
 * fault of this program.
 */
function unreadable(place: Key, cause: unknown): ApiError {
  return new ApiError(503, {
    message: `No key of this server's SECRETS_KEY decrypts a secret of '${place.at(-1)}'. ` +
      "Its operator has to start it with the key that does as well, 'new,old', and to run " +
      "'farebox secrets reseal'; or to enter the secret again.",
    type: "service_unavailable_error",
    code: secretUnreadable,
    cause,
  });
}

/** The code of the error for a secret that no key decrypts. */
export const secretUnreadable = "secret_unreadable";

async function openKey(raw: Uint8Array<ArrayBuffer>): Promise<Opened> {
  const root = await crypto.subtle.importKey("raw", raw, "HKDF", false, ["deriveKey"]);
  const derive = (
    purpose: string,
    algorithm: AesKeyGenParams | HmacKeyGenParams,
    uses: KeyUsage[],
  ) => {
    const info = encoder.encode(`farebox ${purpose}`);
    const how = { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(), info };
    return crypto.subtle.deriveKey(how, root, algorithm, false, uses);
  };
  return {
    aes: await derive("stored secrets", { name: "AES-GCM", length: 256 }, ["encrypt", "decrypt"]),
    hmac: (purpose) =>
      derive(purpose, { name: "HMAC", hash: "SHA-256", length: 256 }, ["sign", "verify"]),
  };
}
