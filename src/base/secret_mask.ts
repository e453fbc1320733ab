const words = /^(set|unset|redacted|masked|hidden|null|undefined|\[object Object\])$/i;
/** `***`, and keys that are shown by their ends: `sk-...a1b2`, `sk_live_****abcd`. */
const shortened = /^[^*.•…]{0,12}(…|[*.•]{3,})[^*.•…]{0,12}$/;

/**
 * Whether a text is one that forms, answers and guides show in the place of a secret, and so is
 * never a secret itself.
 */
export function isMask(text: string): boolean {
  return words.test(text) || shortened.test(text) || text.endsWith("...");
}

/** What is wrong with a mask where a secret is expected. */
export const maskFault = "is what stands in the place of a secret: send the secret itself";
