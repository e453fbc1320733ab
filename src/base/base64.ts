/** Bytes as base64url without padding (RFC 4648, 5). */
export function toBase64Url(bytes: Uint8Array): string {
  return bytes.toBase64({ alphabet: "base64url", omitPadding: true });
}

/** What `toBase64Url` made; null for anything else. */
export function fromBase64Url(text: string): Uint8Array<ArrayBuffer> | null {
  try {
    const bytes = Uint8Array.fromBase64(text, { alphabet: "base64url" });
    // Blanks, padding and the last character's spare bits make several spellings of the same bytes.
    return toBase64Url(bytes) === text ? bytes : null;
  } catch {
    return null;
  }
}
