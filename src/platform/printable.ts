// Control characters, which terminals obey; marks of direction and other invisible characters, with
// which a text looks like another one; and what has no character at all.
const unprintable = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;
const charsMax = 200;

/**
 * Makes a text fit for a terminal, on one line: characters that would move its cursor, change its
 * state or hide are written as `\u{1b}`, and a long text is cut.
 */
export function printable(text: string): string {
  const cut = text.length > charsMax ? `${text.slice(0, charsMax)}…` : text;
  return cut.replace(unprintable, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`);
}
