/** Encodes bytes as base64url without padding (RFC 4648, 5). */
export function toBase64Url(bytes: Uint8Array): string {
  return bytes.toBase64({ alphabet: "base64url", omitPadding: true });
}

/** Decodes what `toBase64Url` wrote; null for anything else. */
export function fromBase64Url(text: string): Uint8Array<ArrayBuffer> | null {
  try {
    const bytes = Uint8Array.fromBase64(text, { alphabet: "base64url" });
    // Spaces, padding and unused bits of the last character allow several spellings of the same
    // bytes.
    return toBase64Url(bytes) === text ? bytes : null;
  } catch {
    return null;
  }
}
