import { Buffer } from "node:buffer";
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createPublicKey,
  hkdfSync,
  timingSafeEqual,
  verify,
} from "node:crypto";

type Opaque = { bytes: Uint8Array };

/** The parts of WebCrypto that the service uses, as synchronous functions with the same results. */
const plain = {
  async importKey(format: string, key: Uint8Array | JsonWebKey): Promise<Opaque> {
    if (key instanceof Uint8Array) return { bytes: key };
    if (format !== "jwk") throw new Error(`no key in a simulation is in the format ${format}`);
    const publicKey = createPublicKey({ key: { ...key }, format });
    const der = publicKey.export({ type: "spki", format: "der" });
    return { bytes: new Uint8Array(der) };
  },
  async digest(name: string, data: BufferSource) {
    const digest = createHash(name.replace("-", "")).update(bytesOf(data)).digest();
    return new Uint8Array(digest).buffer;
  },
  async deriveKey(
    { salt, info }: HkdfParams,
    root: Opaque,
    { length = 256 }: { length?: number },
  ): Promise<Opaque> {
    const [saltBytes, infoBytes] = [bytesOf(salt), bytesOf(info)];
    return {
      bytes: new Uint8Array(hkdfSync("sha256", root.bytes, saltBytes, infoBytes, length / 8)),
    };
  },
  async encrypt({ iv, additionalData }: AesGcmParams, key: Opaque, data: Uint8Array) {
    const cipher = createCipheriv("aes-256-gcm", key.bytes, bytesOf(iv));
    if (additionalData) cipher.setAAD(bytesOf(additionalData));
    const parts = [cipher.update(data), cipher.final(), cipher.getAuthTag()];
    return new Uint8Array(Buffer.concat(parts)).buffer;
  },
  async decrypt({ iv, additionalData }: AesGcmParams, key: Opaque, data: Uint8Array) {
    const tagAt = data.length - 16;
    const decipher = createDecipheriv("aes-256-gcm", key.bytes, bytesOf(iv));
    if (additionalData) decipher.setAAD(bytesOf(additionalData));
    decipher.setAuthTag(data.subarray(tagAt));
    const parts = [decipher.update(data.subarray(0, tagAt)), decipher.final()];
    return new Uint8Array(Buffer.concat(parts)).buffer;
  },
  async sign(_name: string, key: Opaque, data: Uint8Array) {
    return new Uint8Array(createHmac("sha256", key.bytes).update(data).digest()).buffer;
  },
  async verify(
    algorithm: string | Algorithm,
    key: Opaque,
    signature: Uint8Array,
    data: Uint8Array,
  ) {
    // A passkey's signature: Ed25519, where the same key and data give the same signature.
    if (algorithm !== "HMAC") {
      const publicKey = { key: Buffer.from(key.bytes), format: "der", type: "spki" } as const;
      return verify(null, data, publicKey, signature);
    }
    const made = createHmac("sha256", key.bytes).update(data).digest();
    return made.length === signature.length && timingSafeEqual(made, signature);
  },
};

function bytesOf(source: BufferSource): Uint8Array {
  return source instanceof ArrayBuffer
    ? new Uint8Array(source)
    : new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
}

/**
 * WebCrypto works on threads and completes at any time, which a simulation cannot allow. Replaces
 * it by functions that complete within a turn, until the returned function is called.
 */
export function withoutThreads(): () => void {
  const names = Object.keys(plain);
  for (const [name, value] of Object.entries(plain)) {
    Object.defineProperty(crypto.subtle, name, { value, configurable: true });
  }
  return () => names.forEach((name) => Reflect.deleteProperty(crypto.subtle, name));
}
