// The blocks of code in a markdown file, and how what they print is compared.

/** A block of code whose fence says what is to become of it: ```` ```ts run ````. */
export interface Snippet {
  language: string;
  /** The word after the language: "run", or what a test looks for. Empty for none. */
  mark: string;
  code: string;
  /** The block that follows: what a snippet that is run prints. */
  expected: string;
  line: number;
}

/** All blocks of code of a text. */
export function readSnippets(text: string): Snippet[] {
  const blocks = [...text.matchAll(/^```(\w+)(?: (\w+))?\n(.*?)^```$/gms)];
  return blocks.map(({ 1: language = "", 2: mark = "", 3: code = "", index: at }, index) => {
    const line = text.slice(0, at).split("\n").length;
    return { language, mark, code, expected: blocks[index + 1]?.[3] ?? "", line };
  });
}

/** Whether the text is as expected, where `…` stands for anything, and blanks do not count. */
export function matches(printed: string, expected: string): boolean {
  const squeezed = (text: string) => text.replace(/\s+/g, "");
  const parts = squeezed(expected).split("…").map((part) =>
    part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")
  );
  return new RegExp(`^${parts.join(".*?")}$`, "s").test(squeezed(printed));
}
