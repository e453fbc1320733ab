import { isObject, type Json, type JsonObject } from "../../base/json.ts";
import { uncountedCharsMax } from "../../base/limits.ts";
import type { TokenClasses } from "../format.ts";
import type { LastReport, ServedBy, StreamMeter } from "../upstream_response.ts";
import type { Units } from "../../pricing/units.ts";
import type { Clock } from "../../base/clock.ts";
import { TimeSlice } from "../../base/time_slice.ts";
import { type CountTokens, loadTokenizer, sliceAt } from "../../pricing/tokenizer.ts";
import { joinReports, lacksHalf } from "../../pricing/join_reports.ts";
import {
  readReportedExtras,
  readUsage,
  type ReportedExtras,
  type ReportedUsage,
  type TokenUsage,
} from "../../pricing/usage.ts";
import { boundsOf, clampSide, tokensOf, type UsageBounds } from "../../pricing/usage_bounds.ts";
import {
  inputTokensOf,
  outputTokensOf,
  type TokenClass,
  type TokenCounts,
  tokenCounts,
} from "../../base/token_classes.ts";
import { MadeImages } from "./made_images.ts";
import {
  type Counted,
  inClass,
  joined,
  joinExtras,
  larger,
  nothingCounted,
  type Report,
  withinBounds,
} from "./reported_side.ts";

interface MeterOptions {
  /** False where tokens cost nothing: only those that are reported are recorded. */
  countsTokens?: boolean;
  /** Absent: those of text. */
  classes?: TokenClasses | undefined;
  /** The model that is asked. */
  model?: string;
  /** Whether tokens of images that are made have a price of their own. */
  pricesImages?: boolean;
  choices: number;
  /** The most that a provider's report is charged up to. */
  bounds: UsageBounds;
  /** The output tokens that are held. */
  heldOutput: number;
  /** What a class costs in a response with these tokens. Called only for a report above a bound. */
  rateOf: (name: TokenClass, counts: TokenCounts) => bigint;
  /** Counts the prompt ourselves, and stops beyond `most`. Called only when needed. */
  countInput: (most?: number) => Promise<number>;
  clock: Clock;
}

const noExtras: ReportedExtras = {
  toolCalls: {},
  searchContext: null,
  serviceTier: null,
  statedCost: null,
  toolImages: null,
};

// Some servers report only one choice of several, as llama.cpp does. A provider that reports all of
// them may still count the same text up to this factor differently from us.
const tokenizersDiffer = 1.25;

/**
 * What one response has used: the provider's usage where it reports one, else our own count of the
 * text that passed. Text is counted only when needed, and kept only up to a bound.
 */
export class UsageMeter implements StreamMeter {
  /** Whether the upstream has been sent the prompt, or a part of it. */
  promptSent = false;
  /** Whether the upstream has answered with a response, so that it charges for it. */
  isAnswered = false;
  /** Whether the body of the response has begun. */
  bodyBegun = false;
  /** Whether the model has produced any output. */
  producedOutput = false;
  /** Our own count of output that is no text; null where there is none. */
  ownOutput: number | null = null;
  /** Whether there is output that we could not read. */
  hasUnreadOutput = false;
  /** Whether the response has an image that the model made. */
  producedImage = false;
  /** The provider's last usage object that counts, for the caller. */
  reported: LastReport | null = null;
  /** The last usage above a bound, for the log. */
  doubtful: JsonObject | null = null;
  /** The model that the response names; null where it names none. */
  servedModel: string | null = null;
  /** The service tier that the response names. */
  servedTier: string | null = null;
  /** What the provider reports besides tokens. */
  extras: ReportedExtras = noExtras;
  /** Units that the response says it has. */
  units: Units = {};
  /** The most reasoning tokens that it reports; null where it does not say. */
  reasoning: number | null = null;
  readonly #options: MeterOptions;
  #input: Report | null = null;
  #output: Report | null = null;
  /** All reports so far as one, to which a report of a half belongs. */
  #joined: JsonObject | null = null;
  /** Tokens that are reported of the prompt and the response together, and of neither alone. */
  #unassigned = 0;
  /** The report says that nothing of the response is billed. */
  #isUnbilled = false;
  /** Output has arrived since the provider's last usage. */
  #isBehind = false;
  readonly #images = new MadeImages();
  #uncounted = "";
  #counted = 0;
  #countedInput: Promise<number> | null = null;

  constructor(options: MeterOptions) {
    this.#options = options;
  }

  /** Adds what a body or a chunk says of the model and the tier that answer. */
  addServed({ model, tier }: ServedBy): void {
    if (model !== null) this.servedModel = model;
    if (tier !== null) this.servedTier = tier;
  }

  /** Adds a text that the model wrote. */
  addText(text: string): void {
    if (text === "") return;
    this.producedOutput = true;
    this.#uncounted += text;
    this.#isBehind = true;
  }

  /**
   * Adds a reported usage. Within a response usage never shrinks: for input and output, the largest
   * report counts, and of equal ones the more detailed. A half is completed by earlier reports.
   */
  addUsage(sent: Json | undefined): void {
    if (!isObject(sent)) return;
    if (sent.billed === false && this.#hasNoText) return this.#noteUnbilled(sent);
    const alone = readUsage(sent);
    // Calls of tools count also where no tokens are reported with them.
    if (!alone) {
      const { toolCalls, toolImages } = readReportedExtras(sent);
      return this.#addExtras({ ...noExtras, toolCalls, toolImages });
    }
    const isHalf = this.#joined !== null && lacksHalf(sent);
    const raw = isHalf && this.#joined ? joinReports(this.#joined, sent) : sent;
    const usage = isHalf ? readUsage(raw) ?? alone : alone;
    this.#joined = raw;
    this.#addExtras(readReportedExtras(raw));
    this.#addReport(raw, usage);
    if (alone.saysOutput) this.#isBehind = false;
  }

  get #hasNoText(): boolean {
    return this.#uncounted === "" && this.#counted === 0;
  }

  /** Nothing is charged of a response that its provider does not bill, unless it has a text. */
  #noteUnbilled(usage: JsonObject): void {
    this.#isUnbilled = true;
    this.producedOutput = false;
    this.extras = noExtras;
    this.reported = { usage, isWhole: true };
  }

  #addReport(raw: JsonObject, usage: ReportedUsage): void {
    const { counts, reasoning, unassigned } = usage;
    if (reasoning !== null) this.reasoning = Math.max(this.reasoning ?? 0, reasoning);
    this.#unassigned = Math.max(this.#unassigned, unassigned);
    const [prompt, output] = [inputTokensOf(counts), outputTokensOf(counts)];
    const bounds = boundsOf(usage, this.#options.bounds);
    if (prompt > bounds.input || output > bounds.output) this.doubtful = raw;
    const detail = prompt - counts.uncachedInput;
    this.#input = larger(this.#input, { ...usage, total: prompt, detail });
    this.#output = larger(this.#output, { ...usage, total: output, detail: counts.reasoning });
    const [isInput, isOutput] = [this.#input.counts === counts, this.#output.counts === counts];
    if (isInput || isOutput) {
      this.reported = { usage: raw, isWhole: isInput && isOutput && usage.isExact };
    }
    if (output > 0) this.producedOutput = true;
  }

  /** Whether the prompt and the response have been reported. */
  get isReported(): boolean {
    return (this.#input?.total ?? 0) > 0 && (this.#output?.total ?? 0) > 0;
  }

  /** Adds an image that the model made; the same one counts once. */
  addImage(url: string): void {
    this.producedOutput = true;
    this.producedImage = true;
    this.#images.add(url);
  }

  /** Adds calls of tools at the provider that were seen, by the tool's name, as one more report. */
  addToolCalls(toolCalls: ReportedExtras["toolCalls"]): void {
    this.#addExtras({ ...noExtras, toolCalls });
  }

  /** Adds what one report says besides tokens. */
  #addExtras(extras: ReportedExtras): void {
    this.extras = joinExtras(this.extras, extras);
  }

  /** Notes output that we could not read: without a report, all that was held is charged. */
  noteUnreadOutput(): void {
    this.producedOutput = true;
    this.hasUnreadOutput = true;
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
  usage(): TokenUsage | Promise<TokenUsage> {
    if (this.#options.choices > 1) return this.#usage(tokenizersDiffer);
    // A usage reported before the text may cover the prompt alone.
    return this.#usage(this.#isBehind ? 1 : Infinity);
  }

  /** The usage so far, with our count of what has arrived since the provider's last usage. */
  usageSoFar(): TokenUsage | Promise<TokenUsage> {
    return this.#isBehind ? this.#usage(1) : this.usage();
  }

  /** The provider's usage, unless our count of the output exceeds it `tolerance` times. */
  #usage(tolerance: number): TokenUsage | Promise<TokenUsage> {
    if (this.#isUnbilled && this.#hasNoText) return { ...tokenCounts({}), source: "provider" };
    const isAssigned = this.#unassigned === 0 || (this.#output?.total ?? 0) > 0;
    if (!isAssigned) return this.#assigned().then((usage) => this.#withToolImages(usage));
    const input = this.#inputTokens();
    const output = this.#outputTokens(tolerance);
    const both = (input: Counted, output: Counted) => this.#withToolImages(joined(input, output));
    // Mostly both are reported, and nothing has to be counted.
    if (!(input instanceof Promise) && !(output instanceof Promise)) return both(input, output);
    return Promise.all([input, output]).then(([input, output]) => both(input, output));
  }

  /** The usage with the tokens of images that a tool made, where these have a price. */
  #withToolImages(usage: TokenUsage): TokenUsage {
    const { toolImages } = this.extras;
    if (!toolImages || !this.#options.pricesImages) return usage;
    const { text, image, output } = withinBounds(toolImages, this.#options.bounds);
    return {
      ...usage,
      uncachedInput: usage.uncachedInput + text,
      imageInput: usage.imageInput + image,
      imageOutput: usage.imageOutput + output,
    };
  }

  /**
   * What is reported of both sides together: of the prompt is what is reported of it, or as much as
   * we count, and the rest of the response.
   */
  async #assigned(): Promise<TokenUsage> {
    const { countInput, classes, bounds } = this.#options;
    const total = this.#unassigned;
    const isPrompt = classes?.output === null;
    const known = isPrompt
      ? total
      : this.#input?.total || await (this.#countedInput ??= countInput());
    const input = Math.min(known, total, bounds.input);
    const output = isPrompt ? 0 : Math.min(total - input, bounds.output);
    const counts = tokenCounts({
      [this.#inputClass]: input,
      [this.#ownOutputClass]: Math.max(output, await this.countOutput()),
    });
    return { ...counts, source: isPrompt && input === total ? "provider" : "estimated" };
  }

  /**
   * The reported prompt, up to its bound. A prompt is never empty, so zero is replaced by our own
   * count; one that is missing is at least what is reported of its parts.
   */
  #inputTokens(): Counted | Promise<Counted> {
    const report = this.#input;
    if (report && report.total > 0 && report.saysInput) {
      const most = boundsOf(report, this.#options.bounds).input;
      const counts = this.#clamped(inClass(report.counts, this.#inputClass), "input", most);
      return { counts, isReported: report.total <= most };
    }
    if (this.#options.countsTokens === false) return nothingCounted;
    this.#countedInput ??= this.#options.countInput();
    return this.#countedInput.then((tokens) => {
      const counts = { ...(report?.counts ?? tokenCounts({})) };
      counts[this.#inputClass] += Math.max(0, tokens - (report?.total ?? 0));
      return { counts, isReported: false };
    });
  }

  get #inputClass(): TokenClass {
    return this.#options.classes?.input ?? "uncachedInput";
  }

  get #ownOutputClass(): TokenClass {
    return this.#options.classes?.output ?? "output";
  }

  #clamped(counts: TokenCounts, side: "input" | "output", most: number): TokenCounts {
    if (tokensOf(side, counts) <= most) return counts;
    const rateOf = (name: TokenClass) => this.#options.rateOf(name, counts);
    return clampSide(counts, side, { most, rateOf });
  }

  /** The reported output, by the same rules. Text that was delivered is never free. */
  #outputTokens(tolerance: number): Counted | Promise<Counted> {
    if (this.#options.classes?.output === null) {
      return { counts: tokenCounts({}), isReported: true };
    }
    const report = this.#output;
    if (this.#options.countsTokens === false && !report) return nothingCounted;
    if (this.hasUnreadOutput && !(report && report.total > 0)) {
      const { heldOutput: held } = this.#options;
      const output = Math.min(held, this.ownOutput ?? held);
      return { counts: tokenCounts({ [this.#ownOutputClass]: output }), isReported: false };
    }
    if (!report) {
      if (!this.producedOutput) return { counts: tokenCounts({}), isReported: false };
      return this.countOutput().then((output) => ({
        counts: tokenCounts({
          output,
          imageOutput: this.#images.tokens([this.servedModel, this.#options.model]),
        }),
        isReported: false,
      }));
    }
    const bound = boundsOf(report, this.#options.bounds).output;
    const isWithin = report.total <= bound && (report.total > 0 || !this.producedOutput);
    const counts = inClass(
      report.counts,
      this.producedImage ? "imageOutput" : this.#ownOutputClass,
    );
    if (isWithin && tolerance === Infinity) return { counts, isReported: true };
    return this.#comparedWithOurs(report, { counts, bound, tolerance });
  }

  /** The reported output, unless our own count exceeds it `tolerance` times. */
  async #comparedWithOurs(
    report: Report,
    { counts, bound, tolerance }: { counts: TokenCounts; bound: number; tolerance: number },
  ): Promise<Counted> {
    const counted = await this.countOutput();
    const isSilent = report.total === 0 && this.producedOutput;
    if (isSilent || counted > report.total * tolerance) {
      const output = counts.output + counted - report.total;
      const imageOutput = isSilent
        ? this.#images.tokens([this.servedModel, this.#options.model])
        : counts.imageOutput;
      return { counts: { ...counts, output, imageOutput }, isReported: false };
    }
    // An upstream that ignored the cap has delivered this much.
    const most = Math.max(bound, counted);
    return { counts: this.#clamped(counts, "output", most), isReported: report.total <= most };
  }
}
