import { bareModelName } from "./model_family.ts";

/** The output of a response, in tokens, where neither its caller nor its model bounds it. */
const usualOutputTokens = 16_384;

/**
 * The most output tokens of a response, as the makers publish it. Only exact families: a number
 * that is too low would shorten responses, and without one the upstream says what it takes.
 */
const published: readonly [names: RegExp, tokens: number][] = [
  [/^gpt-3\.5-turbo|^gpt-4-(turbo|1106|0125|vision)|^gpt-4o-2024-05-13$/, 4_096],
  [/^gpt-4(-0314|-0613)?$/, 8_192],
  [/^(chat)?gpt-4o(?!-64k)(-|$)|^gpt-5(\.\d)?-chat/, 16_384],
  [/^gpt-4\.1(-|$)|^o1-preview/, 32_768],
  [/^o1-mini/, 65_536],
  [/^o[134](-|$)/, 100_000],
  [/^gpt-5-pro/, 272_000],
  [/^gpt-5(\.[12])?(-|$)/, 128_000],
  [/^claude-3-(opus|sonnet|haiku)/, 4_096],
  [/^claude-3[-.]5-/, 8_192],
  [/^claude-opus-4([-.][01])?(-\d{8}|$)/, 32_000],
  [/^claude-opus-4[-.]5|^claude-(sonnet|haiku)-4([-.][05])?(-\d{8}|$)/, 64_000],
  [/^gemini-(1\.5|2\.0)-/, 8_192],
  [/^gemini-2\.5-(pro|flash|flash-lite)(-\d+|-preview-[\d-]+)?$/, 65_536],
  [/^gemini-3(\.\d)?-(pro|flash)(-preview)?$/, 65_536],
];

/** Bounds of the output tokens of a model's responses. */
export interface OutputBounds {
  /** The most that the model can write; infinite where that is not known. */
  modelOutputTokens: number;
  /** The bound where the caller asks for none. */
  usualOutputTokens: number;
}

/** Returns the bounds of a model by its name and its context window, where that is known. */
export function outputBoundsOf(model: string, contextWindow: number | null): OutputBounds {
  const name = bareModelName(model);
  const most = published.find(([names]) => names.test(name))?.[1] ?? null;
  const window = contextWindow ?? Infinity;
  return {
    modelOutputTokens: Math.min(most ?? Infinity, window),
    usualOutputTokens: Math.min(most ?? usualOutputTokens, window),
  };
}
