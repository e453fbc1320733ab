import { ownMember } from "../base/json.ts";
import { type Amount, divideRoundingUp, fromDecimal } from "../base/money.ts";
import type { ListPrice } from "../projects/price_schema.ts";

/** Prices of what is counted by the unit, beside tokens; null where a price has none. */
export interface UnitPrices {
  /** For each image, by its quality and size. */
  images: Readonly<Record<string, Amount>> | null;
  /** For a million characters. */
  characters: Amount | null;
  /** For a minute of sound. */
  audioMinutes: Amount | null;
}

/** Images of one quality and size; null where that is not known. */
export interface ImageUnits {
  count: number;
  size: string | null;
  quality: string | null;
}

/** Units that a request asks for at most, or that its response says it has. */
export interface Units {
  images?: ImageUnits;
  characters?: number;
  /** May have a fraction. */
  audioSeconds?: number;
  /** Only of a request: the most seconds that a report is charged up to. */
  audioSecondsMost?: number;
}

/** Units as an entry records them, and as they are charged. */
export interface UsedUnits {
  /** By the name of the price that applies: `1024x1024`, `hd 1024x1024`, `*`. */
  images?: Readonly<Record<string, number>>;
  characters?: number;
  /** Each second that has begun. */
  audioSeconds?: number;
}

/** The names of unit prices in a price and in an entry's `price`. */
export type UnitPrice = keyof UnitPrices;

/** Reads the unit prices of a price list's price; null where it has none. */
export function unitPricesOf({ images, characters, audioMinutes }: ListPrice): UnitPrices | null {
  if (images === undefined && characters === undefined && audioMinutes === undefined) return null;
  const amountOf = (text: string | undefined) => (text === undefined ? null : fromDecimal(text));
  const entries = images && Object.entries(images);
  return {
    images: entries === undefined
      ? null
      : Object.fromEntries(entries.map(([name, text]) => [name, fromDecimal(text)])),
    characters: amountOf(characters),
    audioMinutes: amountOf(audioMinutes),
  };
}

/**
 * The name of the price of an image: the most exact one, `hd 1024x1024`, then `1024x1024`, then
 * `hd`, then `*`; else the dearest that can apply. With `atMost`, what is not known may turn out to
 * be anything: always the dearest. Null where no price is for such an image.
 */
export function imagePriceName(
  images: NonNullable<UnitPrices["images"]>,
  { size, quality }: Pick<ImageUnits, "size" | "quality">,
  { atMost = false } = {},
): string | null {
  const isKnown = size !== null && quality !== null;
  const names = [isKnown ? `${quality} ${size}` : null, size, quality, "*"];
  const exact = names.find((name) => name !== null && Object.hasOwn(images, name)) ?? null;
  if (isKnown || (exact !== null && !atMost)) return exact;
  let dearest: string | null = null;
  for (const [name, price] of Object.entries(images)) {
    const of = readImageName(name);
    const isOther = (size !== null && of.size !== null && of.size !== size) ||
      (quality !== null && of.quality !== null && of.quality !== quality);
    if (!isOther && (dearest === null || price > (images[dearest] ?? 0n))) dearest = name;
  }
  return dearest;
}

function readImageName(name: string): { size: string | null; quality: string | null } {
  if (name === "*") return { size: null, quality: null };
  const [first = "", second] = name.split(" ");
  if (second !== undefined) return { size: second, quality: first };
  return /^\d/.test(first) ? { size: first, quality: null } : { size: null, quality: first };
}

/**
 * Returns the units that are charged: what the response reports, up to what is possible, else what
 * was asked for. With null for the report: the most that is held.
 */
export function usedUnits(
  { images, characters, audioSeconds, audioSecondsMost = audioSeconds }: Units,
  reported: Units | null,
  prices: UnitPrices | null,
): UsedUnits {
  const used: UsedUnits = {};
  if (images) {
    const { size = null, quality = null, count = images.count } = reported?.images ?? {};
    const image = { size: images.size ?? size, quality: images.quality ?? quality };
    const label = [image.quality, image.size].filter((part) => part !== null).join(" ");
    const atMost = reported === null;
    const name = (prices?.images && imagePriceName(prices.images, image, { atMost })) ??
      (label || "*");
    if (count > 0) used.images = { [name]: Math.min(count, images.count) };
  }
  if (characters !== undefined) used.characters = characters;
  if (audioSeconds !== undefined) {
    const said = reported?.audioSeconds ?? 0;
    const most = Math.max(audioSeconds, audioSecondsMost ?? 0);
    used.audioSeconds = Math.ceil(said > 0 ? Math.min(said, most) : audioSeconds);
  }
  return used;
}

/** In these parts of 1e-9 currency units every unit has an exact price. */
export const unitParts = 60_000_000n;

/** The cost of units, in `unitParts`. */
export function unitCost(prices: UnitPrices, used: UsedUnits): bigint {
  let cost = 0n;
  for (const name in used.images) {
    cost += BigInt(used.images[name] ?? 0) * (ownMember(prices.images ?? {}, name) ?? 0n) *
      unitParts;
  }
  return cost + BigInt(used.characters ?? 0) * (prices.characters ?? 0n) * 60n +
    BigInt(used.audioSeconds ?? 0) * (prices.audioMinutes ?? 0n) * 1_000_000n;
}

/** The most that the units of a request can cost, without markup. */
export function unitBound(prices: UnitPrices, asked: Units): Amount {
  return divideRoundingUp(unitCost(prices, usedUnits(asked, null, prices)), unitParts);
}

/** Returns the prices of the units that were used, by their names in an entry's `price`. */
export function* usedUnitPrices(
  prices: UnitPrices,
  used: UsedUnits,
): Generator<readonly [string, Amount]> {
  for (const name in used.images) {
    const price = ownMember(prices.images ?? {}, name);
    if (price !== undefined) yield [`images.${name}`, price];
  }
  const { characters, audioMinutes } = prices;
  if (used.characters !== undefined && characters !== null) yield ["characters", characters];
  if (used.audioSeconds !== undefined && audioMinutes !== null) {
    yield ["audioMinutes", audioMinutes];
  }
}
