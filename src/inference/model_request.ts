import type { PriceField } from "../base/token_classes.ts";
import type { Json, JsonObject } from "../base/json.ts";
import type { SearchContextSize } from "../pricing/price_level.ts";
import type { UnitPrices, Units } from "../pricing/units.ts";
import type { FormFile } from "../base/form_body.ts";

/** A request of any format, validated, with what its price, its hold and its upstream depend on. */
export interface ModelRequest {
  model: string;
  stream: boolean;
  /** Whether a streaming caller asked for usage. */
  wantsUsage: boolean;
  /** Billed outputs for each prompt. */
  choices: number;
  /** The caller's bound on output tokens, or null. Zero and less count as no bound. */
  maxTokens: number | null;
  /** Tools or JSON output: a response cut short would be of no use. */
  structured: boolean;
  /** JSON or a tool call is required: clients parse the response, and show only a refusal. */
  requiresJson: boolean;
  /** The caller asks for reasoning, which may be hidden. */
  asksReasoning: boolean;
  /** Tokens that the model may think for, as the caller bounds it; null where it does not. */
  thinkingBudget: number | null;
  extras: RequestExtras;
  /** The field `user`, else `safety_identifier`; unchecked. */
  user: unknown;
  /** The response that the caller continues, where the body has the conversation in its place. */
  continues?: string;
  /** The body that is passed on to the upstream. */
  body: JsonObject;
  /** Length of the body as received, in bytes; of a form, that of its texts. */
  bytes: number;
  /** Units that it asks for, where its format is priced by them. */
  units?: Units;
  /** The most tokens that its file can have, as far as its headers tell. */
  fileTokens?: number;
  /** The most that its file can have and cause by its bytes, whatever its headers say. */
  fileMost?: { input: number; output: number };
  /** The most output tokens, where no field can bound them: a hold covers them all. */
  outputTokens?: number;
  /** The file of a form. */
  file?: FormFile;
  /** Measures the file, which takes long: before that, units and tokens are the least possible. */
  measure?: () => FileSize;
}

/** What the size of a file decides. */
export type FileSize = Required<Pick<ModelRequest, "units" | "fileTokens" | "outputTokens">>;

/** What a request asks for that may have a price of its own. */
export interface RequestExtras {
  /** Null where the caller leaves it to the provider. */
  serviceTier: string | null;
  /** Kinds of output; null where the caller does not say. */
  modalities: readonly string[] | null;
  /** Tools that run at the provider, by name. */
  hostedTools: readonly string[];
  /** The caller's bound on their calls. */
  maxToolCalls: number | null;
  searchContext: SearchContextSize | null;
  /** Whether the request asks for cache entries that are kept for an hour. */
  hourCache: boolean;
}

/** What happens to fields of a request that the format does not know. */
export interface FieldPolicy {
  unknown: "refuse" | "pass";
  /** Fields that are passed on all the same. */
  allowed: readonly string[];
}

/** What a model's price has a price for. */
export interface PriceCoverage {
  serviceTier(name: string): boolean;
  /** Calls of a tool at the provider. */
  tool(name: string): boolean;
  /** A class of tokens, by its price field. */
  field(price: PriceField): boolean;
  /** Each request. */
  request: boolean;
  /** Images, characters and minutes; null where it has none. */
  units: UnitPrices | null;
  /**
   * Whether this is the catalogue's price of the model: what it leaves out costs as other tokens
   * do.
   */
  isListed: boolean;
}

/** A part of a prompt that is not text: an image, a sound, a file. */
export interface MediaPart {
  type: string;
  /** Name of the field that holds it, for errors. */
  param: string;
  /** The part itself. */
  value: JsonObject;
  /** Characters of the body that it takes, which say nothing about its tokens. */
  chars: number;
}

/** An id in a request of a response that an upstream keeps, or of an item of one. */
export interface KeptReference {
  kind: "response" | "item";
  id: string;
  /** Name of the field that holds it, for errors. */
  param: string;
}

/** What a request refers to, where the upstream keeps nothing: to be sent with the request. */
export interface KeptItems {
  /** The conversation up to the previous response. */
  history: readonly Json[];
  /** A bound on its length, as JSON text. */
  historyBytes: number;
  /** Items by their ids. */
  items: ReadonlyMap<string, Json>;
}

/** A request without what its price does not cover, and the names of tools that were removed. */
export interface FittedRequest {
  request: ModelRequest;
  removedTools: readonly string[];
}
