import { isObject, type Json, type JsonObject } from "../base/json.ts";
import { uncountedCharsMax } from "../base/limits.ts";
import type { Clock } from "../base/clock.ts";
import { TimeSlice } from "../base/time_slice.ts";
import { type CountTokens, loadTokenizer, sliceAt } from "../pricing/tokenizer.ts";
import {
  estimatedUsage,
  type PlausibleUsage,
  readOutput,
  readUsage,
  type TokenUsage,
} from "../pricing/usage.ts";

interface MeterOptions {
  choices: number;
  /** What is believed of the provider's word. */
  plausible: PlausibleUsage;
  /** Our own count of the prompt, which stops beyond `most`; asked for only when it is needed. */
  countInput: (most?: number) => Promise<number>;
  clock: Clock;
}

// Some servers report one choice of several (llama.cpp does); by less than this, a provider that
// reports them all may count the same text otherwise than we do.
const tokenizersDiffer = 1.25;

/**
 * What one answer has used: the provider's word where there is one, else our own count of what went
 * by. Text is counted only when it must be, and never kept beyond a bound.
 */
export class UsageMeter {
  /** Whether the model's server has been sent the prompt, or a part of it. */
  promptSent = false;
  /** Whether the model has said anything. */
  producedOutput = false;
  /** The provider's usage object as it came, for the caller. */
  reported: JsonObject | null = null;
  /** The last `usage` that was not believed: for the log. */
  doubtful: JsonObject | null = null;
  readonly #options: MeterOptions;
  #provider: TokenUsage | null = null;
  /** What is believed of a `usage` whose prompt is not. */
  #output: ReturnType<typeof readOutput> = null;
  /** Output has come since the provider's last word. */
  #isBehind = false;
  #uncounted = "";
  #counted = 0;
  #input: Promise<number> | null = null;

  constructor(options: MeterOptions) {
    this.#options = options;
  }

  /** Adds a text that the model wrote. */
  addText(text: string): void {
    if (text === "") return;
    this.producedOutput = true;
    this.#uncounted += text;
    this.#isBehind = true;
  }

  /** Takes note of a `usage`; the last one that makes sense stands. */
  addUsage(raw: Json | undefined): void {
    const usage = readUsage(raw, this.#options.plausible);
    if (!isObject(raw)) return;
    if (!usage) {
      this.doubtful = raw;
      this.#output = readOutput(raw, this.#options.plausible);
      if (this.#output && this.#output.output > 0) this.producedOutput = true;
      return;
    }
    this.#provider = usage;
    this.#isBehind = false;
    this.reported = raw;
    if (usage.output > 0) this.producedOutput = true;
  }

  /** Whether the output is surely no longer than this: one byte is at least one token's worth. */
  surelyWithin(tokens: number): boolean {
    return this.#counted + this.#uncounted.length * 3 <= tokens &&
      this.#uncounted.length < uncountedCharsMax;
  }

  /** Our own count of the output so far. */
  async countOutput(): Promise<number> {
    const count: CountTokens = await loadTokenizer();
    const stretch = new TimeSlice(this.#options.clock);
    // More may come in a pause, and somebody else may ask: whoever is next counts what is left.
    while (this.#uncounted !== "") {
      if (stretch.expired) await stretch.yield();
      const slice = sliceAt(this.#uncounted, 0);
      this.#uncounted = this.#uncounted.slice(slice.length);
      this.#counted += count(slice);
    }
    return this.#counted;
  }

  /** Our own count of the prompt, which stops beyond `most`. */
  countPrompt(most: number): Promise<number> {
    return this.#options.countInput(most);
  }

  /** The use of an answer that has come to its end: the provider's word, or our own count. */
  usage(): Promise<TokenUsage> {
    // A word that came before the text may be of the prompt alone.
    const isWhole = this.#options.choices === 1 && !this.#isBehind;
    return this.#usage(isWhole ? Infinity : tokenizersDiffer);
  }

  /** The use so far: of what has come since the provider's word, at least our own count. */
  usageSoFar(): Promise<TokenUsage> {
    return this.#isBehind ? this.#usage(1) : this.usage();
  }

  /** Our own count, where it is more than `room` times the provider's. */
  async #usage(room: number): Promise<TokenUsage> {
    if (!this.#provider) {
      const counted = this.producedOutput ? await this.countOutput() : 0;
      this.#input ??= this.#options.countInput();
      const { output, reasoning } = this.#output ?? { output: counted, reasoning: 0 };
      return estimatedUsage(await this.#input, output, reasoning);
    }
    if (room === Infinity) return this.#provider;
    const output = await this.countOutput();
    if (output <= this.#provider.output * room) return this.#provider;
    return { ...this.#provider, output, source: "estimated" };
  }
}
