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
  /** Another class that includes these tokens already: they are not summed again. */
  within?: string;
  /** The field of a price for these tokens, per million. */
  price: string;
  /**
   * The price field that applies where `price` is absent from a price; itself earlier in the table.
   */
  priceElse?: string;
  /** What a request must contain or ask for to cause such tokens. Absent: any request can. */
  causedBy?: "media" | "hourCache" | "tools" | "audioOutput" | "imageOutput";
  /** The place in an hourly counter's values. Stored: append only, and never reuse one. */
  position: number;
  /** Whether an entry has the field even when it is zero, and the console's form a column. */
  always: boolean;
}

/**
 * Every class of tokens that a provider may count separately, in the order in which people read
 * them. Adding one takes a row here, and a line where usage is read. Classes do not overlap, except
 * those that have `within`. Positions 0, 6, 7, 16 and 17 of an hourly counter are a count and
 * amounts.
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
    always: true,
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
    always: true,
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
    always: true,
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
    causedBy: "hourCache",
    position: 8,
    always: false,
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
    causedBy: "media",
    position: 9,
    always: false,
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
    causedBy: "media",
    position: 10,
    always: false,
  },
  {
    name: "cachedAudioInput",
    field: "cachedAudioInputTokens",
    metric: "cached_audio_input",
    label: "Cached audio input",
    description: "Audio tokens of the prompt that were read from the provider's cache.",
    side: "input",
    price: "cachedAudioInput",
    priceElse: "cachedInput",
    causedBy: "media",
    position: 13,
    always: false,
  },
  {
    name: "cachedImageInput",
    field: "cachedImageInputTokens",
    metric: "cached_image_input",
    label: "Cached image input",
    description: "Image tokens of the prompt that were read from the provider's cache.",
    side: "input",
    price: "cachedImageInput",
    priceElse: "cachedInput",
    causedBy: "media",
    position: 14,
    always: false,
  },
  {
    name: "citation",
    field: "citationTokens",
    metric: "citation",
    label: "Citation",
    description: "Tokens of sources that the provider read to answer.",
    side: "input",
    price: "citation",
    priceElse: "input",
    causedBy: "tools",
    position: 15,
    always: false,
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
    always: true,
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
    causedBy: "audioOutput",
    position: 11,
    always: false,
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
    causedBy: "imageOutput",
    position: 12,
    always: false,
  },
  {
    name: "reasoning",
    field: "reasoningTokens",
    metric: "reasoning",
    label: "Reasoning",
    description: "Reasoning tokens: part of `output`, at a price of their own where they have one.",
    side: "output",
    within: "output",
    price: "reasoningOutput",
    priceElse: "output",
    position: 5,
    always: true,
  },
] as const satisfies readonly TokenClassRow[];

type Row = (typeof tokenClasses)[number];

/** The name of a token class. */
export type TokenClass = Row["name"];
/** The name of a price field. */
export type PriceField = Row["price"];
/** Price fields that every price has. */
export type RequiredPriceField = Exclude<Row, { priceElse: string }>["price"];
/** A price field that a price may omit. */
type OptionalPriceField = Exclude<PriceField, RequiredPriceField>;
/** What a request must contain or ask for to cause tokens of some classes. */
export type TokenCause = Extract<Row, { causedBy: string }>["causedBy"];
/** Token counts of each class. */
export type TokenCounts = Record<TokenClass, number>;

type AlwaysField = Extract<Row, { always: true }>["field"];
/** Token counts as an entry stores them. Some classes appear only where there were any. */
export type StoredTokens =
  & Record<AlwaysField, number>
  & { [Field in Exclude<Row["field"], AlwaysField>]?: number };

// Rows as the general type: some properties are missing in some rows.
const rows: readonly (TokenClassRow & Pick<Row, "name" | "field" | "price">)[] = tokenClasses;

/** Every class, as rows of the general type. */
export const tokenClassRows = rows;
/** The classes that add up to all tokens: those that no other class includes. */
const countedClasses = rows.filter(({ within }) => within === undefined);

const noTokens = Object.fromEntries(rows.map(({ name }) => [name, 0])) as TokenCounts;
const noStoredTokens = Object.fromEntries(
  rows.flatMap(({ always, field }) => (always ? [[field, 0]] : [])),
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

/** Builds one value for each class, by its field in an entry: for schemas and examples. */
export function mapTokenFields<T>(make: (row: TokenClassRow) => T): Record<Row["field"], T> {
  return Object.fromEntries(rows.map((row) => [row.field, make(row)])) as Record<Row["field"], T>;
}

/** Builds one value for each class, by its name: for schemas and sums. */
export function mapTokenNames<T>(make: (row: TokenClassRow) => T): Record<TokenClass, T> {
  return Object.fromEntries(rows.map((row) => [row.name, make(row)])) as Record<TokenClass, T>;
}

/** Builds one value for each price field: for schemas. */
export function mapPriceFields<T>(
  make: (row: TokenClassRow & { price: PriceField }) => T,
): Record<PriceField, T> {
  return Object.fromEntries(rows.map((row) => [row.price, make(row)])) as Record<PriceField, T>;
}

/** A price field of a class that every entry has. */
export type CommonPriceField = Extract<Row, { always: true }>["price"];

/** Builds one value for each price field of a class that every entry has: for the price form. */
export function mapCommonPrices<T>(
  make: (row: TokenClassRow & { price: CommonPriceField }) => T,
): Record<CommonPriceField, T> {
  const common = rows.filter(({ always }) => always) as (TokenClassRow & {
    price: CommonPriceField;
  })[];
  return Object.fromEntries(common.map((row) => [row.price, make(row)])) as Record<
    CommonPriceField,
    T
  >;
}
