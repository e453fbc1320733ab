import { BoundedMap } from "../base/bounded_map.ts";
import { fromBytes, toBytes } from "../base/json.ts";
import { modelReasoningKey } from "../store/keys.ts";
import { emptyWrite, type Kv } from "../store/kv.ts";

/**
 * Which models reason in tokens that they do not show. A stream of such a model has to be read to
 * its end to be charged exactly. Learned from what upstreams report, and stored.
 */
export interface ReasoningModels {
  /** Reads what is known of a model, once for each process. */
  load(url: string, model: string): Promise<void> | null;
  /**
   * Whether the model may reason unseen: unless it is known not to, or has reported none. What has
   * ever reported hidden tokens does.
   */
  mayReason(url: string, model: string): boolean;
  /** Whether it is known to reason: by its reports, or else by its name. */
  reasons(url: string, model: string): boolean;
  /** Notes a report of reasoning tokens; zero says that the model reports them and had none. */
  note(url: string, model: string, tokens: number): void;
}

/**
 * Models from before hidden reasoning. Unlike a list of models that reason, this one does not go
 * out of date.
 */
const neverReasons = new RegExp(
  "(^|/)(gpt-(3\\.5|4|4o|4\\.1|4\\.5)(?![\\d.])|chatgpt-4o|claude-(2|3|v1|instant)(?!-7)|" +
    "gemini-(1\\.|2\\.0-flash(?!-thinking))|(open-)?mi[sx]tral-|codestral|llama-?[23]|gemma-?[23]|" +
    "text-|davinci|babbage|sonar(-pro)?$|command-r|qwen2)",
  "i",
);

/** Models whose short responses may be all reasoning. What is missing here is learned. */
const reasonsByName = new RegExp(
  "(^|/)(o\\d|gpt-[5-9]|gpt-oss|grok-[4-9]|gemini-(2\\.5-pro|[3-9])|deepseek-(r\\d|v[4-9]))|" +
    "reasoner|thinking|magistral",
  "i",
);

const modelsRememberedMax = 10_000;

/** Creates what is known of models, over the store. */
export function createReasoningModels(kv: Kv, warn: (error: unknown) => void): ReasoningModels {
  const known = new BoundedMap<string, boolean | null>(modelsRememberedMax);
  const nameOf = (url: string, model: string) => `${url} ${model}`;

  async function read(url: string, model: string): Promise<void> {
    const name = nameOf(url, model);
    const { value } = await kv.get(modelReasoningKey(url, model));
    if (!known.has(name)) known.set(name, value && fromBytes<boolean>(value));
  }

  async function store(url: string, model: string, reasons: boolean): Promise<void> {
    const key = modelReasoningKey(url, model);
    const row = await kv.get(key);
    // Another process may have seen hidden tokens.
    if (row.value && fromBytes<boolean>(row.value) === true) {
      known.set(nameOf(url, model), true);
      return;
    }
    const write = emptyWrite();
    write.checks.push({ key, version: row.version });
    write.sets.push({ key, value: toBytes(reasons) });
    await kv.atomic(write);
  }

  return {
    load(url, model) {
      const name = nameOf(url, model);
      return known.has(name) ? null : read(url, model);
    },
    mayReason(url, model) {
      return known.get(nameOf(url, model)) ?? !neverReasons.test(model);
    },
    reasons(url, model) {
      return known.get(nameOf(url, model)) ?? reasonsByName.test(model);
    },
    note(url, model, tokens) {
      const name = nameOf(url, model);
      const before = known.get(name);
      const reasons = tokens > 0;
      if (before === true || before === reasons) return;
      known.set(name, reasons);
      store(url, model, reasons).catch(warn);
    },
  };
}
