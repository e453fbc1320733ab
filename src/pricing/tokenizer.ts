/** Counts the tokens of any text, and never throws. */
export type CountTokens = (text: string) => number;

type Encoding = typeof import("gpt-tokenizer/o200k");

let loading: Promise<CountTokens> | null = null;

/**
 * The o200k_base tokenizer, loaded at the first call: its ranks take 80 MB and a fifth of a second,
 * which a service whose upstreams report usage never needs.
 */
export function loadTokenizer(): Promise<CountTokens> {
  loading ??= import("gpt-tokenizer/o200k").then(counter);
  return loading;
}

// Random letters of this length take 5 to 10 ms. Matching a run of millions overflows the stack.
const sliceChars = 2 * 1024;

/**
 * The part of a text from an offset that is counted at once. It ends at a space, which no token
 * spans, so that the parts count as much as the whole. Without a space, a cut adds at most one
 * token.
 */
export function sliceAt(text: string, from: number): string {
  const slice = text.slice(from, from + sliceChars);
  if (from + slice.length === text.length) return slice;
  const blank = slice.lastIndexOf(" ");
  if (blank > sliceChars / 2 && !/\s/.test(slice.charAt(blank - 1))) return slice.slice(0, blank);
  const endsInHalf = /[\ud800-\udbff]$/.test(slice);
  return endsInHalf ? slice.slice(0, -1) : slice;
}

// Merging is quadratic in the length of a run that the tokenizer's pattern does not split: 200,000
// equal letters took 20 s. Long runs are therefore cut. Each cut adds at most one token.
const longRun = /\S{65,}|\s{65,}/g;
const pieceLength = 64;

// Special tokens such as `<|endoftext|>` are counted as plain text.
const plainText = { disallowedSpecial: new Set<string>() };

// The tokenizer caches 100,000 words by default. Once the cache is full, each new word costs a walk
// over the evicted ones, and every word keeps the text that contains it in memory.
const wordsRemembered = 1_000;

function counter({ countTokens, setMergeCacheSize }: Encoding): CountTokens {
  setMergeCacheSize(wordsRemembered);
  const countSlice: CountTokens = (text) => {
    let tokens = 0;
    let from = 0;
    for (const run of text.matchAll(longRun)) {
      if (run.index > from) tokens += countTokens(text.slice(from, run.index), plainText);
      for (let i = 0; i < run[0].length; i += pieceLength) {
        tokens += countTokens(run[0].slice(i, i + pieceLength), plainText);
      }
      from = run.index + run[0].length;
    }
    if (from < text.length) tokens += countTokens(text.slice(from), plainText);
    return tokens;
  };
  return (text) => {
    let tokens = 0;
    for (let from = 0; from < text.length;) {
      const slice = sliceAt(text, from);
      tokens += countSlice(slice);
      from += slice.length;
    }
    return tokens;
  };
}

/** Adds a margin to our count for an upstream's other tokenizer: a tenth, and 16 tokens. */
export function withTokenizerMargin(tokens: number): number {
  return Math.ceil(tokens * 1.1) + 16;
}
