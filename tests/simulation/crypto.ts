import { Buffer } from "node:buffer";
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  hkdfSync,
  timingSafeEqual,
} from "node:crypto";

type Opaque = { bytes: Uint8Array };

/** What the service uses of WebCrypto, as plain functions of the same results. */
const plain = {
  async importKey(_format: string, raw: Uint8Array): Promise<Opaque> {
    return { bytes: raw };
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
  async verify(_name: string, key: Opaque, signature: Uint8Array, data: Uint8Array) {
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
 * WebCrypto works on threads and answers when it likes; in a simulation nothing may. Puts what needs
 * no more than a turn in its place, until the returned function is called.
 */
export function withoutThreads(): () => void {
  const names = Object.keys(plain);
  for (const [name, value] of Object.entries(plain)) {
    Object.defineProperty(crypto.subtle, name, { value, configurable: true });
  }
  return () => names.forEach((name) => Reflect.deleteProperty(crypto.subtle, name));
}
