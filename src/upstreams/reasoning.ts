import { BoundedMap } from "../base/bounded_map.ts";
import { fromBytes, toBytes } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import { modelReasoningKey, sharedReasoningKey } from "../store/keys.ts";
import { emptyWrite } from "../store/kv.ts";
import type { Upstream } from "./upstream.ts";

/** An upstream as one project knows it. */
export interface KnownUpstream extends Pick<Upstream, "name" | "url"> {
  projectId: string;
}

/**
 * Which models reason in tokens that they do not show. A stream of such a model has to be read to
 * its end to be charged exactly. Learned from what upstreams report of calls that did not ask for
 * reasoning, for each project and upstream, and stored.
 */
export interface ReasoningModels {
  /** Reads what is known of a model, once for each process. */
  load(at: KnownUpstream, model: string): Promise<void> | null;
  /**
   * Whether the model may reason unseen: unless it is known not to, or has reported none. What has
   * reported hidden tokens does.
   */
  mayReason(at: KnownUpstream, model: string): boolean;
  /** Whether it is known to reason: by its reports, or else by its name. */
  reasons(at: KnownUpstream, model: string): boolean;
  /**
   * Notes a report of reasoning tokens; zero says that the model reports them and had none. What is
   * known to reason is known not to after twenty such reports over an hour, and none other.
   */
  note(at: KnownUpstream, model: string, tokens: number): void;
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
/** Reports of zero after which a model is known not to reason, and their time in ms. */
const zerosNeeded = 20;
const zerosWithinMs = 60 * 60_000;

/** What is known of a model; `reasons` is null where nothing is. */
interface KnownModel {
  reasons: boolean | null;
  /** Reports of zero since the last one of hidden tokens, and when the first of them came. */
  zeros: number;
  since: number;
}

/** Creates what is known of models, over the store. */
export function createReasoningModels(
  { kv, clock }: Pick<Deps, "kv" | "clock">,
  warn: (error: unknown) => void,
): ReasoningModels {
  const known = new BoundedMap<string, KnownModel>(modelsRememberedMax);
  const nameOf = ({ projectId, name, url }: KnownUpstream, model: string) =>
    `${projectId} ${name} ${url} ${model}`;
  const remember = (name: string, reasons: boolean | null) => {
    const model = { reasons, zeros: 0, since: 0 };
    known.set(name, model);
    return model;
  };

  async function read(at: KnownUpstream, model: string): Promise<void> {
    const name = nameOf(at, model);
    const own = await kv.get(modelReasoningKey(at, model));
    // Version 0.9.0 has stored it for all projects.
    const { value } = own.value ? own : await kv.get(sharedReasoningKey(at.url, model));
    if (!known.has(name)) remember(name, value && fromBytes<boolean>(value));
  }

  async function store(at: KnownUpstream, model: string, reasons: boolean): Promise<void> {
    const key = modelReasoningKey(at, model);
    const { version } = await kv.get(key);
    const write = emptyWrite();
    write.checks.push({ key, version });
    write.sets.push({ key, value: toBytes(reasons) });
    await kv.atomic(write);
  }

  /** Whether reports of zero have come for long enough. */
  function isUnlearned(model: KnownModel): boolean {
    const now = clock.elapsed();
    if (model.zeros === 0) model.since = now;
    model.zeros++;
    return model.zeros >= zerosNeeded && now - model.since >= zerosWithinMs;
  }

  return {
    load(at, model) {
      return known.has(nameOf(at, model)) ? null : read(at, model);
    },
    mayReason(at, model) {
      return known.get(nameOf(at, model))?.reasons ?? !neverReasons.test(model);
    },
    reasons(at, model) {
      return known.get(nameOf(at, model))?.reasons ?? reasonsByName.test(model);
    },
    note(at, model, tokens) {
      const name = nameOf(at, model);
      const before = known.get(name) ?? remember(name, null);
      const reasons = tokens > 0;
      if (reasons) before.zeros = 0;
      if (before.reasons === reasons) return;
      if (before.reasons === true && !isUnlearned(before)) return;
      remember(name, reasons);
      store(at, model, reasons).catch(warn);
    },
  };
}
