import type { ImageSize } from "./image_size.ts";

/** How one family of models counts an image: its tokens, and the most of any image. */
interface ImageRule {
  tokens(size: ImageSize, detail: string | null): number;
  most: number;
}

/** OpenAI's tiles of 512 pixels: https://platform.openai.com/docs/guides/images-vision */
function tiles(base: number, perTile: number): ImageRule {
  return {
    tokens({ width, height }, detail) {
      if (detail === "low") return base;
      const fit = Math.min(1, 2048 / Math.max(width, height));
      const shorter = Math.min(1, 768 / (Math.min(width, height) * fit));
      const side = (length: number) => Math.ceil(Math.round(length * fit * shorter) / 512);
      return base + perTile * side(width) * side(height);
    },
    most: base + perTile * 8,
  };
}

/** OpenAI's patches of 32 pixels, of which a larger image has no more than `most`. */
function patches(most: number, factor: number): ImageRule {
  const most32 = Math.ceil(most * factor);
  return {
    tokens: ({ width, height }) =>
      Math.min(most32, Math.ceil(Math.ceil(width / 32) * Math.ceil(height / 32) * factor)),
    most: most32,
  };
}

/** https://platform.claude.com/docs/en/build-with-claude/vision */
function pixels(most: number): ImageRule {
  return {
    tokens: ({ width, height }) => Math.min(most, Math.ceil(width * height / 750) + 1),
    most,
  };
}

/** https://ai.google.dev/gemini-api/docs/tokens: tiles that are cropped to the image. */
const geminiTiles: ImageRule = {
  tokens({ width, height }) {
    if (width <= 384 && height <= 384) return 258;
    const unit = Math.min(768, Math.max(256, Math.floor(Math.min(width, height) / 1.5)));
    return Math.min(4_128, 258 * Math.ceil(width / unit) * Math.ceil(height / unit));
  },
  most: 4_128,
};

/** A budget for each image, whatever its size. */
function fixed(most: number): ImageRule {
  return { tokens: () => most, most };
}

/** Patches of 28 pixels without a low bound (Qwen), and of 16 up to 1,024 (Pixtral). */
const anyOpenModel: ImageRule = {
  tokens({ width, height }) {
    const of = (side: number) => Math.ceil(width / side) * Math.ceil(height / side);
    return Math.min(16_384, Math.max(of(28), Math.min(4_160, of(16))) + 64);
  },
  most: 16_384,
};

/** The dearer of several rules, where a family's own is not published. */
function dearest(...rules: readonly ImageRule[]): ImageRule {
  return {
    tokens: (size, detail) => Math.max(...rules.map((rule) => rule.tokens(size, detail))),
    most: Math.max(...rules.map(({ most }) => most)),
  };
}

/** By the model's name without its maker; the first that matches. */
const families: readonly (readonly [RegExp, ImageRule])[] = [
  [/^gpt-4o-mini/, tiles(2_833, 5_667)],
  [/^(gpt-4\.1-mini|gpt-5-mini)/, patches(1_536, 1.62)],
  [/^(gpt-4\.1-nano|gpt-5-nano)/, patches(1_536, 2.46)],
  [/^o4-mini/, patches(1_536, 1.72)],
  [/^(gpt-4o|chatgpt-4o|gpt-4\.1|gpt-4\.5|gpt-4-)/, tiles(85, 170)],
  [/^o[13]/, tiles(75, 150)],
  [/^gpt-5(-chat|-20|$)/, tiles(70, 140)],
  [/^gpt-(5\.|[6-9])/, dearest(tiles(85, 170), patches(2_500, 1.2))],
  [/^claude-(2|3|(sonnet|haiku|opus)-4(-[0-6])?(-\d{8})?$|4)/, pixels(1_601)],
  [/^claude/, pixels(4_785)],
  [/^gemini-([12]\.|pro|flash)/, geminiTiles],
  [/^gemini/, dearest(geminiTiles, fixed(1_120))],
];
const unknownModel = dearest(anyOpenModel, tiles(85, 170), pixels(1_601), geminiTiles);

/**
 * A bound on the prompt tokens of an image for a model, by what providers publish. With a null size
 * that of any image.
 */
export function imageTokens(
  model: string,
  { size, detail }: { size: ImageSize | null; detail: string | null },
): number {
  const name = model.slice(model.lastIndexOf("/") + 1).replace(/^ft:/, "").toLowerCase();
  const rule = families.find(([pattern]) => pattern.test(name))?.[1] ?? unknownModel;
  return size ? rule.tokens(size, detail) : rule.most;
}
