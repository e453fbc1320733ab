import { BoundedMap } from "../base/bounded_map.ts";
import { type Amount, toAmount } from "../base/money.ts";
import type { EntryUsage } from "../ledger/entry.ts";

// This computes a response's cost from its entry without the code that charged it: no table of
// token classes, no shared arithmetic. A class that only one of the two knows shows as a fault.

/** The fields of tokens, each with the prices that may apply: the first one that the entry has. */
const pricesOfField: Record<string, readonly string[]> = {
  uncachedInputTokens: ["input"],
  cachedInputTokens: ["cachedInput", "input"],
  cacheWriteTokens: ["cacheWrite", "input"],
  cacheWriteHourTokens: ["cacheWriteHour", "cacheWrite", "input"],
  audioInputTokens: ["audioInput", "input"],
  imageInputTokens: ["imageInput", "input"],
  cachedAudioInputTokens: ["cachedAudioInput", "cachedInput", "input"],
  cachedImageInputTokens: ["cachedImageInput", "cachedInput", "input"],
  citationTokens: ["citation", "input"],
  outputTokens: ["output"],
  audioOutputTokens: ["audioOutput", "output"],
  imageOutputTokens: ["imageOutput", "output"],
};

/** Prices that were met: most entries have the same ones. */
const known = new BoundedMap<string, bigint>(1_000);

/** A decimal as a fraction of 1e-12, exactly. */
function scaled(text: string | undefined): bigint {
  if (text === undefined) return 0n;
  return known.getOrMake(text, parseScaled);
}

function parseScaled(text: string): bigint {
  const [, sign = "", whole = "0", fraction = ""] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text) ??
    [];
  const digits = BigInt(whole + fraction.padEnd(12, "0").slice(0, 12));
  return sign === "" ? digits : -digits;
}
const one = 1_000_000_000_000n;

/**
 * The possible costs of a response, recomputed from its entry. An entry records output only as
 * tokens: a provider may have reported none for text that was produced, for which fees are due.
 */
export function recomputeCost(entry: EntryUsage): Amount[] {
  const { price, toolCalls, cached, ...usage } = entry;
  const fields = Object.entries(usage).filter((field): field is [string, number] =>
    field[0].endsWith("Tokens") && typeof field[1] === "number"
  );
  // In parts of 1e-12 for each million tokens.
  let tokens = 0n;
  let output = 0;
  for (const [field, count] of fields) {
    if (field === "reasoningTokens") {
      const own = price.reasoningOutput;
      if (own !== undefined) tokens += BigInt(count) * (scaled(own) - scaled(price.output));
      continue;
    }
    if (field.toLowerCase().includes("output")) output += count;
    const name = pricesOfField[field]?.find((name) => price[name] !== undefined);
    // An unknown class has no price here, so that its entry is reported.
    tokens += BigInt(count) * scaled(name === undefined ? undefined : price[name]);
  }
  const calls = Object.entries(toolCalls ?? {}).reduce(
    (sum, [tool, count]) => sum + BigInt(count) * scaled(price[`toolCalls.${tool}`]),
    0n,
  );
  const ofUnits = unitsCost(entry);
  const markup = scaled("100") + scaled(price.markupPercent);
  const cost = (producedOutput: boolean): Amount => {
    const request = producedOutput ? scaled(price.request) : 0n;
    // Tokens in 1e-24 for each million, then with the markup in 1e-36 for each 100 million.
    const list = (tokens * scaled(price.factor ?? "1") + (request + calls) * one * 1_000_000n) *
        60n + ofUnits * one;
    const stated = scaled(price.stated) * one * 60_000_000n;
    const marked = (price.stated === undefined ? list : stated) * markup;
    const parts = 1_000n * one * one * 100n * 60_000_000n;
    const fee = producedOutput ? scaled(price.requestFee) / 1_000n : 0n;
    const minimum = producedOutput ? scaled(price.minimum) / 1_000n : 0n;
    const due = marked + fee * parts;
    const whole = due > minimum * parts ? due : minimum * parts;
    // Only a response from the project's cache has a factor.
    const charged = whole * scaled(cached ? price.costFactor : "1");
    return toAmount((charged + parts * one - 1n) / (parts * one));
  };
  // Units are recorded only of what was produced.
  return output > 0 || ofUnits > 0n ? [cost(true)] : [cost(true), cost(false)];
}

/** What images, characters and seconds cost, in 1e-12 / 60,000,000. */
function unitsCost({ price, images, characters, audioSeconds }: EntryUsage): bigint {
  const made = Object.entries(images ?? {}).reduce(
    (sum, [name, count]) => sum + BigInt(count) * scaled(price[`images.${name}`]),
    0n,
  );
  return made * 60_000_000n + BigInt(characters ?? 0) * scaled(price.characters) * 60n +
    BigInt(audioSeconds ?? 0) * scaled(price.audioMinutes) * 1_000_000n;
}
