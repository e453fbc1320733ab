/** One class of tokens. */
export interface TokenClassRow {
  /** Its name in the program, in sums and in the summary API. */
  name: string;
  /** Its field in an entry's `usage`, in the API and in CSV. */
  field: string;
  /** Its label value in metrics. */
  metric: string;
  /** Its title on pages. */
  label: string;
  description: string;
  side: "input" | "output";
  /**
   * Another class that includes these tokens already: they are neither summed nor charged again.
   */
  within?: string;
  /** The field of a price for these tokens, per million. Absent where they are not charged. */
  price?: string;
  /**
   * The price field that applies where `price` is absent from a price; itself earlier in the table.
   */
  priceElse?: string;
  /** The place in an hourly counter's values. Stored: append only, and never reuse one. */
  position: number;
  /**
   * Whether any reader of usage reports it, which makes it part of schemas, CSV, forms and metrics.
   */
  active: boolean;
}

/**
 * Every class of tokens that a provider may count separately, in the order in which people read
 * them. Adding one takes a row here, and a line where usage is read. Classes do not overlap, except
 * those that have `within`. Positions 0, 6 and 7 of an hourly counter are a count and two amounts.
 */
export const tokenClasses = [
  {
    name: "uncachedInput",
    field: "uncachedInputTokens",
    metric: "input",
    label: "Input",
    description: "Prompt tokens that were not cached.",
    side: "input",
    price: "input",
    position: 1,
    active: true,
  },
  {
    name: "cachedInput",
    field: "cachedInputTokens",
    metric: "cached_input",
    label: "Cached input",
    description: "Prompt tokens read from the provider's cache.",
    side: "input",
    price: "cachedInput",
    priceElse: "input",
    position: 2,
    active: true,
  },
  {
    name: "cacheWrite",
    field: "cacheWriteTokens",
    metric: "cache_write",
    label: "Cache write",
    description: "Prompt tokens written to the provider's cache, for five minutes or unspecified.",
    side: "input",
    price: "cacheWrite",
    priceElse: "input",
    position: 3,
    active: true,
  },
  {
    name: "cacheWriteHour",
    field: "cacheWriteHourTokens",
    metric: "cache_write_hour",
    label: "Cache write, 1 hour",
    description: "Prompt tokens written to the provider's cache for one hour.",
    side: "input",
    price: "cacheWriteHour",
    priceElse: "cacheWrite",
    position: 8,
    active: false,
  },
  {
    name: "audioInput",
    field: "audioInputTokens",
    metric: "audio_input",
    label: "Audio input",
    description: "Audio tokens of the prompt.",
    side: "input",
    price: "audioInput",
    priceElse: "input",
    position: 9,
    active: false,
  },
  {
    name: "imageInput",
    field: "imageInputTokens",
    metric: "image_input",
    label: "Image input",
    description: "Image tokens of the prompt.",
    side: "input",
    price: "imageInput",
    priceElse: "input",
    position: 10,
    active: false,
  },
  {
    name: "output",
    field: "outputTokens",
    metric: "output",
    label: "Output",
    description: "Output tokens, including reasoning tokens.",
    side: "output",
    price: "output",
    position: 4,
    active: true,
  },
  {
    name: "audioOutput",
    field: "audioOutputTokens",
    metric: "audio_output",
    label: "Audio output",
    description: "Audio tokens of the output.",
    side: "output",
    price: "audioOutput",
    priceElse: "output",
    position: 11,
    active: false,
  },
  {
    name: "imageOutput",
    field: "imageOutputTokens",
    metric: "image_output",
    label: "Image output",
    description: "Image tokens of the output.",
    side: "output",
    price: "imageOutput",
    priceElse: "output",
    position: 12,
    active: false,
  },
  {
    name: "reasoning",
    field: "reasoningTokens",
    metric: "reasoning",
    label: "Reasoning",
    description: "Reasoning tokens: part of `output`, and charged with it.",
    side: "output",
    within: "output",
    position: 5,
    active: true,
  },
] as const satisfies readonly TokenClassRow[];

type Row = (typeof tokenClasses)[number];

/** The name of a token class. */
export type TokenClass = Row["name"];
/** The name of a price field. */
export type PriceField = Extract<Row, { price: string }>["price"];
/** Price fields that every price has. */
export type RequiredPriceField = Exclude<
  Extract<Row, { price: string }>,
  { priceElse: string }
>["price"];
/** Token counts of each class. */
export type TokenCounts = Record<TokenClass, number>;

type ActiveField = Extract<Row, { active: true }>["field"];
/** Token counts as an entry stores them. Inactive classes appear only where there were any. */
export type StoredTokens =
  & Record<ActiveField, number>
  & { [Field in Exclude<Row["field"], ActiveField>]?: number };

// Rows as the general type: some properties are missing in some rows.
const rows: readonly (TokenClassRow & Pick<Row, "name" | "field">)[] = tokenClasses;

/** The classes that readers of usage report now. */
export const activeClasses = rows.filter(({ active }) => active);
/** The classes that add up to all tokens: those that no other class includes. */
const countedClasses = rows.filter(({ within }) => within === undefined);
/** The classes that have a price of their own. */
export const pricedClasses = rows.flatMap((row) =>
  row.price === undefined ? [] : [{ ...row, price: row.price as PriceField }]
);

const noTokens = Object.fromEntries(rows.map(({ name }) => [name, 0])) as TokenCounts;
const noStoredTokens = Object.fromEntries(
  activeClasses.map(({ field }) => [field, 0]),
) as StoredTokens;
const inputClasses = countedClasses.filter(({ side }) => side === "input");
const outputClasses = countedClasses.filter(({ side }) => side === "output");

// Several of these run for each call: plain loops over a copied object take a tenth of the time
// that building one from a list does.

/** Returns counts of some classes, with zero for the others. */
export function tokenCounts(counts: Partial<TokenCounts>): TokenCounts {
  return { ...noTokens, ...counts };
}

/** Returns all tokens of the prompt. */
export function inputTokensOf(counts: TokenCounts): number {
  let sum = 0;
  for (const { name } of inputClasses) sum += counts[name];
  return sum;
}

/** Returns all tokens of the response. */
export function outputTokensOf(counts: TokenCounts): number {
  let sum = 0;
  for (const { name } of outputClasses) sum += counts[name];
  return sum;
}

/** Returns the prompt's classes of one report and the response's of another. */
export function joinSides(input: TokenCounts, output: TokenCounts): TokenCounts {
  if (input === output) return input;
  const counts = { ...noTokens };
  for (const { name, side } of rows) counts[name] = (side === "input" ? input : output)[name];
  return counts;
}

/** Returns the counts as an entry stores them. */
export function storeTokens(counts: TokenCounts): StoredTokens {
  const stored = { ...noStoredTokens };
  for (const { name, field } of rows) {
    if (counts[name] > 0) stored[field] = counts[name];
  }
  return stored;
}

/** Returns the counts of a stored entry; a class that it lacks is zero. */
export function readTokens(stored: Partial<StoredTokens>): TokenCounts {
  const counts = { ...noTokens };
  for (const { name, field } of rows) {
    const tokens = stored[field];
    if (tokens !== undefined) counts[name] = tokens;
  }
  return counts;
}

/** Returns all tokens of a stored entry, of both sides or of one. */
export function storedTotal(stored: Partial<StoredTokens>, side?: TokenClassRow["side"]): number {
  let sum = 0;
  for (const row of countedClasses) {
    if (side === undefined || row.side === side) sum += stored[row.field] ?? 0;
  }
  return sum;
}

/** Builds one value for each active class, by its field in an entry: for schemas and examples. */
export function mapTokenFields<T>(make: (row: TokenClassRow) => T): Record<ActiveField, T> {
  return Object.fromEntries(activeClasses.map((row) => [row.field, make(row)])) as Record<
    ActiveField,
    T
  >;
}

/** Builds one value for each active class, by its name: for schemas and sums. */
export function mapTokenNames<T>(make: (row: TokenClassRow) => T): Record<ActiveClass, T> {
  return Object.fromEntries(activeClasses.map((row) => [row.name, make(row)])) as Record<
    ActiveClass,
    T
  >;
}

type ActiveClass = Extract<Row, { active: true }>["name"];

/** A price field of an active class. */
export type ActivePriceField = Extract<Extract<Row, { price: string }>, { active: true }>["price"];
/** A price field of an active class that a price may omit. */
export type OptionalPriceField = Exclude<ActivePriceField, RequiredPriceField>;

type PricedRow<Field> = TokenClassRow & { price: Field };

/**
 * Builds one value for each price field of an active class: for columns of a form and descriptions.
 */
export function mapPriceFields<T>(
  make: (row: PricedRow<ActivePriceField>) => T,
): Record<ActivePriceField, T> {
  const active = pricedClasses.filter((row) => row.active) as PricedRow<ActivePriceField>[];
  return Object.fromEntries(active.map((row) => [row.price, make(row)])) as Record<
    ActivePriceField,
    T
  >;
}

/** The same for fields that a price may omit. */
export function mapOptionalPriceFields<T>(
  make: (row: PricedRow<ActivePriceField>) => T,
): Record<OptionalPriceField, T> {
  const required = rows.flatMap(({ price, priceElse }) => (price && !priceElse ? [price] : []));
  const all = Object.entries(mapPriceFields(make));
  return Object.fromEntries(all.filter(([field]) => !required.includes(field))) as Record<
    OptionalPriceField,
    T
  >;
}
