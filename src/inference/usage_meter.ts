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
  /** The most that a provider's usage may report to be believed. */
  plausible: PlausibleUsage;
  /** Counts the prompt ourselves, and stops beyond `most`. Called only when needed. */
  countInput: (most?: number) => Promise<number>;
  clock: Clock;
}

// Some servers report only one choice of several, as llama.cpp does. A provider that reports all of
// them may still count the same text up to this factor differently from us.
const tokenizersDiffer = 1.25;

/**
 * What one response has used: the provider's usage where it reports one, else our own count of the
 * text that passed. Text is counted only when needed, and kept only up to a bound.
 */
export class UsageMeter {
  /** Whether the upstream has been sent the prompt, or a part of it. */
  promptSent = false;
  /** Whether the model has produced any output. */
  producedOutput = false;
  /** The provider's usage object, unchanged, for the caller. */
  reported: JsonObject | null = null;
  /** The last usage that was not plausible, for the log. */
  doubtful: JsonObject | null = null;
  readonly #options: MeterOptions;
  #provider: TokenUsage | null = null;
  /** The output part of a usage whose prompt part is not plausible. */
  #output: ReturnType<typeof readOutput> = null;
  /** Output has arrived since the provider's last usage. */
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

  /** Adds a reported usage. The last plausible one counts. */
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

  /** Whether the output has certainly no more tokens than this: a token takes a byte at least. */
  surelyWithin(tokens: number): boolean {
    return this.#counted + this.#uncounted.length * 3 <= tokens &&
      this.#uncounted.length < uncountedCharsMax;
  }

  /** Our own count of the output so far. */
  async countOutput(): Promise<number> {
    const count: CountTokens = await loadTokenizer();
    const timeSlice = new TimeSlice(this.#options.clock);
    // During a yield more text may arrive, and another caller may count: each takes what is left.
    while (this.#uncounted !== "") {
      if (timeSlice.expired) await timeSlice.yield();
      const part = sliceAt(this.#uncounted, 0);
      this.#uncounted = this.#uncounted.slice(part.length);
      this.#counted += count(part);
    }
    return this.#counted;
  }

  /** Our own count of the prompt, which stops beyond `most`. */
  countPrompt(most: number): Promise<number> {
    return this.#options.countInput(most);
  }

  /** The usage of a finished response: the provider's, or our own count. */
  usage(): Promise<TokenUsage> {
    // A usage reported before the text may cover the prompt alone.
    const isWhole = this.#options.choices === 1 && !this.#isBehind;
    return this.#usage(isWhole ? Infinity : tokenizersDiffer);
  }

  /** The usage so far, with our count of what has arrived since the provider's last usage. */
  usageSoFar(): Promise<TokenUsage> {
    return this.#isBehind ? this.#usage(1) : this.usage();
  }

  /** The provider's usage, unless our count of the output exceeds it `room` times. */
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
