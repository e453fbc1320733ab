import type { ImageSize } from "./image_size.ts";
import { bareModelName, modelVersion } from "./model_family.ts";

/**
 * How one family of models counts an image, as bounds: the tokens of a size, and the most of any
 * size. `detail` is the caller's, in small letters.
 */
interface ImageRule {
  tokens(size: ImageSize, detail: string): number;
  most(detail: string): number;
}

/** The size after scaling down to fit a square; sides are rounded up, since it is a bound. */
function fitted({ width, height }: ImageSize, side: number): ImageSize {
  const scale = Math.min(1, side / Math.max(width, height));
  const scaled = (length: number) => Math.max(1, Math.ceil(length * scale - 1e-6));
  return { width: scaled(width), height: scaled(height) };
}

/** How many squares of a side length cover an image. */
function squares({ width, height }: ImageSize, side: number): number {
  return Math.ceil(width / side) * Math.ceil(height / side);
}

/**
 * OpenAI's tiles of 512 pixels, after scaling to 2,048 by 2,048 and to 768 on the shorter side:
 * https://developers.openai.com/api/docs/guides/images-vision
 */
function tiles(base: number, perTile: number): ImageRule {
  return {
    tokens(size, detail) {
      if (detail === "low") return base;
      const { width, height } = fitted(size, 2048);
      const shorter = Math.min(1, 768 / Math.min(width, height));
      const side = (length: number) => Math.ceil(length * shorter - 1e-6);
      return base + perTile * squares({ width: side(width), height: side(height) }, 512);
    },
    most: (detail) => detail === "low" ? base : base + perTile * 8,
  };
}

/**
 * Patches of 32 pixels: an image within a square of `side` has no more than `budget` of them.
 * OpenAI multiplies in single precision, so that 1,225 patches by 1.2 are 1,471 tokens.
 */
function patches(factor: number, { budget, side }: { budget: number; side: number }): ImageRule {
  const billed = (count: number) => Math.ceil(count * Math.fround(factor));
  return {
    tokens: (size) => billed(Math.min(budget, squares(fitted(size, side), 32))),
    most: () => billed(Math.min(budget, (side / 32) ** 2)),
  };
}

/**
 * Claude's patches of 28 pixels, with a few tokens around them:
 * https://platform.claude.com/docs/en/build-with-claude/vision
 */
function visualTokens(most: number, edge: number): ImageRule {
  const framing = 4;
  return {
    tokens: (size) => Math.min(most, squares(fitted(size, edge), 28)) + framing,
    most: () => most + framing,
  };
}

/** The rule of Claude's earlier models: a token for 750 pixels. */
function pixels(most: number): ImageRule {
  return {
    tokens: ({ width, height }) => Math.min(most, Math.ceil(width * height / 750) + 1),
    most: () => most,
  };
}

/** Gemini's tiles, cut by the shorter side, and a preview: https://ai.google.dev/gemini-api/docs/tokens */
const geminiTiles: ImageRule = {
  tokens(size) {
    const { width, height } = size;
    if (width <= 384 && height <= 384) return 258;
    const side = Math.min(768, Math.max(256, Math.floor(Math.min(width, height) / 1.5)));
    return 258 * (Math.min(16, squares(size, side)) + 1);
  },
  most: () => 258 * 17,
};

/** A budget for each image: https://ai.google.dev/gemini-api/docs/media-resolution */
const geminiBudget: ImageRule = byDetail(
  (detail) => fixed(["", "auto", "low", "medium", "high"].includes(detail) ? 1_120 : 2_240),
);

/** Grok's tiles of 448 pixels, and a preview. */
const grokTiles: ImageRule = {
  tokens: (size) => Math.min(16_384, 256 * (squares(size, 448) + 1)),
  most: () => 16_384,
};

function fixed(most: number): ImageRule {
  return { tokens: () => most, most: () => most };
}

function byDetail(choose: (detail: string) => ImageRule): ImageRule {
  return {
    tokens: (size, detail) => choose(detail).tokens(size, detail),
    most: (detail) => choose(detail).most(detail),
  };
}

/** The dearer of several rules, where a family's own is not published or depends on the version. */
function dearest(...rules: readonly ImageRule[]): ImageRule {
  return {
    tokens: (size, detail) => Math.max(...rules.map((rule) => rule.tokens(size, detail))),
    most: (detail) => Math.max(...rules.map((rule) => rule.most(detail))),
  };
}

const anySide = Infinity;
/** OpenAI refuses an image of more patches. */
const patchesMost = 30_000;

/** Models that see the original size by default, up to `original` patches. */
function originalByDefault(factor: number, original: number): ImageRule {
  const low = fixed(Math.ceil(256 * Math.fround(factor)));
  const high = patches(factor, { budget: 2_500, side: anySide });
  const rest = patches(factor, { budget: original, side: anySide });
  return byDetail((detail) => detail === "low" ? low : detail === "high" ? high : rest);
}

/** gpt-5.4: the original size only on request. */
function originalOnRequest(factor: number): ImageRule {
  const low = patches(factor, { budget: 6_144, side: 2_048 });
  const high = patches(factor, { budget: 2_500, side: 2_048 });
  const original = patches(factor, { budget: 10_000, side: 6_000 });
  return byDetail((detail) =>
    detail === "low" ? low : ["", "auto", "high"].includes(detail) ? high : original
  );
}

/** GPT-4 and later, by version. Smaller models have a larger factor. */
function gptRule(name: string): ImageRule {
  const { major, minor } = modelVersion(name) ?? { major: Infinity, minor: 0 };
  const factor = name.includes("nano") ? 2.46 : name.includes("mini") ? 1.62 : 1.2;
  if (major < 5) {
    if (minor !== 1 || factor === 1.2) return tiles(85, 170);
    const large = { budget: 6_144, side: 2_048 };
    return patches(factor, factor === 1.62 ? large : { budget: 1_536, side: anySide });
  }
  if (major > 5 || minor > 5) return originalByDefault(factor, patchesMost);
  if (minor === 5) return originalByDefault(factor, 10_000);
  if (minor === 4) return originalOnRequest(factor);
  if (minor >= 2) return patches(factor, { budget: 6_144, side: 2_048 });
  return factor === 1.2 ? tiles(70, 140) : patches(factor, { budget: 1_536, side: anySide });
}

const standardClaude = dearest(visualTokens(1_568, 1_568), pixels(1_601));
const largeClaude = dearest(visualTokens(4_784, 2_576), pixels(4_785));

/** Claude 4.7 and later see larger images. */
function claudeRule(name: string): ImageRule {
  const version = modelVersion(name);
  if (!version || version.major > 4) return largeClaude;
  return version.major === 4 && version.minor >= 7 ? largeClaude : standardClaude;
}

/** Gemini 3 and later have a budget for each image. `gemini-flash-latest` may be any version. */
function geminiRule(name: string): ImageRule {
  const version = modelVersion(name);
  if (!version) return dearest(geminiTiles, geminiBudget);
  return version.major < 3 ? geminiTiles : geminiBudget;
}

/** Patches of 28 pixels without a low bound (Qwen), and of 16 with one for each row (Pixtral). */
const anyOpenModel: ImageRule = {
  tokens: (size) =>
    Math.min(16_384, Math.max(squares(size, 28), Math.min(4_160, squares(size, 16))) + 64),
  most: () => 16_384,
};

/** The dearest of what is usual: a name that is not known may stand for any model. */
const unknownModel = ignoringDetail(dearest(
  ...[anyOpenModel, tiles(85, 170), largeClaude, geminiTiles, geminiBudget, grokTiles],
  ...[patches(1.2, { budget: patchesMost, side: anySide }), fixed(1_601)],
));

function ignoringDetail(rule: ImageRule): ImageRule {
  return { tokens: (size) => rule.tokens(size, ""), most: () => rule.most("") };
}

/** By how a name begins; the first that matches. */
const families: readonly (readonly [RegExp, (name: string) => ImageRule])[] = [
  [/(chat)?gpt-4o-mini|4o-mini/, () => tiles(2_833, 5_667)],
  [/(?<![a-z0-9])o4-mini/, () => patches(1.72, { budget: 1_536, side: anySide })],
  [/(?<![a-z0-9])o[13](?![a-z0-9])/, () => tiles(75, 150)],
  [/(?<![a-z0-9])computer-use-preview/, () => tiles(65, 129)],
  [/(?<![a-z0-9])(chatgpt-4|gpt-[4-9])/, gptRule],
  [/(?<![a-z0-9])claude/, claudeRule],
  [/(?<![a-z0-9])gemini/, geminiRule],
];

function ruleOf(model: string): ImageRule {
  const name = bareModelName(model);
  for (const [pattern, rule] of families) {
    const at = name.search(pattern);
    // Elsewhere in a name it may be that model, or another one.
    if (at >= 0) return at === 0 ? rule(name) : dearest(rule(name.slice(at)), unknownModel);
  }
  return unknownModel;
}

/**
 * A bound on the prompt tokens of an image for a model, by what providers publish. With a null size
 * that of any image. `detail` is OpenAI's, or Gemini's media resolution.
 */
export function imageTokens(
  model: string,
  { size, detail }: { size: ImageSize | null; detail: string | null },
): number {
  const rule = ruleOf(model);
  const asked = detail?.toLowerCase().replace("media_resolution_", "") ?? "";
  return size ? rule.tokens(size, asked) : rule.most(asked);
}
