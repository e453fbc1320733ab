import { speechFormat } from "../../src/formats/audio/speech_format.ts";
import { chatToMessages } from "../../src/formats/bridges/chat_to_messages/bridge.ts";
import { responsesToChat } from "../../src/formats/bridges/responses_to_chat/bridge.ts";
import { chatFormat } from "../../src/formats/chat/chat_format.ts";
import { messagesFormat } from "../../src/formats/messages/messages_format.ts";
import { responsesFormat } from "../../src/formats/responses/responses_format.ts";
import { BodyScan } from "../../src/inference/meter/body_scan.ts";
import { UsageMeter } from "../../src/inference/meter/usage_meter.ts";
import { wav } from "./media.ts";
import { twoUpstreams } from "./routing.ts";
import type { Body } from "./world.ts";
import * as sent from "./sent_bodies.ts";
import type { SentBody } from "./sent_bodies.ts";

/** The costs of a call of a kind, by how much is known of its response. */
export interface Costs {
  /** By the upstream's report. */
  report: string;
  /** By our own count of the text that has passed. */
  count: string;
  /** The prompt alone. */
  prompt: string;
  /** All that was held. */
  held: string;
}

/** A kind of body: how it is asked for, what the upstream sends, and how its caller gets it. */
export interface CallKind {
  name: string;
  path: string;
  body: Body;
  /** Sent as a form. */
  file?: Blob;
  sent: SentBody;
  /**
   * How its caller gets it: `whole` once it has arrived, `streamed` by event, or `passing` on as it
   * arrives, unread.
   */
  gets: "whole" | "streamed" | "passing";
  /** The upstream's text is read as it arrives. */
  isReadByEvent: boolean;
  /** A project's cache answers; nobody is asked. */
  isHit?: true;
  /** Of two targets the one whose ending it is: the second is asked once the first has failed. */
  routed?: "first" | "second";
  hasKey: boolean;
  project: Body;
  costs: Costs;
  /** Rows that are kept of its response, with their number. */
  keeps?: readonly string[];
  step: Step;
}

/** A step of ours after the upstream has answered, which may throw. */
interface Step {
  of: object;
  method: string;
  /** A method of what that one returns. */
  within?: string;
  /** How much is known of the response after this step. */
  known: keyof Costs;
  /** The caller has got the status 200. */
  isLate?: true;
}

const price = { input: "1", output: "2", maxOutputTokens: 1000, reasoning: false };
/** Prices of every kind's model, per million tokens. */
const models = {
  "test-model": price,
  "an-image": { ...price, images: { "*": "0.04" } },
  "a-voice": { input: "0", output: "0", characters: "15" },
  "an-ear": { input: "0", output: "0", audioMinutes: "0.006" },
  "a-reading-ear": { input: "1", audioInput: "1", output: "2" },
};
const millionths = (count: number) => String(count / 1_000_000);

/** The costs of a text: 10 in and 6 out by its report, 5 out by our count, `held` out in all. */
function textCosts({ prompt = 8, held = 100, counted = 5, factor = 1 } = {}): Costs {
  return {
    report: millionths((10 + 2 * 6) * factor),
    count: millionths((prompt + 2 * counted) * factor),
    prompt: millionths(prompt * factor),
    held: millionths((prompt + 2 * held) * factor),
  };
}

/** Costs that are the same however little is known of the response. */
const fixedCosts = (cost: string): Costs => ({
  ...{ report: cost, count: cost },
  ...{ prompt: cost, held: cost },
});

/** Reading events of a stream, which fails after its response has begun. */
const takesEvents = (of: object): Step => ({
  ...{ of, method: "createStream", within: "takeAll" },
  ...{ known: "prompt", isLate: true },
});

const usual = {
  gets: "whole" as const,
  isReadByEvent: false,
  hasKey: true,
  project: {},
  costs: textCosts(),
};
const streamed = { ...usual, gets: "streamed" as const, isReadByEvent: true, hasKey: false };
const speaking = (format: string) => ({
  upstream: { url: "https://upstream.test/v1", formats: [format] },
});

const chat = {
  path: "/v1/chat/completions",
  body: {
    ...{ model: "test-model", user: "ada", max_tokens: 100 },
    messages: [{ role: "user", content: "Hi" }],
  },
};
const streamedChat = { ...chat, body: { ...chat.body, stream: true } };
const message = {
  path: "/v1/messages",
  body: {
    ...{ model: "test-model", max_tokens: 100 },
    messages: [{ role: "user", content: "Hi" }],
  },
};
const response = {
  path: "/v1/responses",
  body: { model: "test-model", input: "Hi", user: "ada", max_output_tokens: 100 },
};
const cached = {
  responseCache: { enabled: true, maxTemperature: 2, scope: "project", costFactor: "0.5" },
};
const routes = {
  smart: {
    targets: ["main", "spare"].map((upstream) => ({ upstream, model: "test-model" })),
  },
};
const routed = {
  body: { ...chat.body, model: "smart" },
  project: { upstreams: twoUpstreams, routes },
};

/** The kinds whose text has arrived whole before anything is sent to the caller. */
const wholeKinds: CallKind[] = [
  {
    ...{ name: "a whole chat", ...usual, ...chat, sent: sent.chatJson, hasKey: false },
    step: { of: chatFormat, method: "readResponse", known: "report" },
  },
  {
    ...{ name: "a whole chat under a key", ...usual, ...chat, sent: sent.chatJson },
    keeps: ["cached_response 1"],
    project: cached,
    step: { of: UsageMeter.prototype, method: "addUsage", known: "count" },
  },
  {
    ...{ name: "a whole chat over a bridge", ...usual, ...chat },
    sent: { ...sent.messageJson, beyond: sent.largeEnd },
    project: speaking("messages"),
    step: { of: chatToMessages, method: "translateWhole", known: "report" },
  },
  {
    ...{ name: "a whole response", ...usual, ...response, sent: sent.responseJson },
    keeps: ["kept_id 2"],
    step: { of: responsesFormat, method: "readResponse", known: "report" },
  },
  {
    ...{ name: "a whole response over a bridge, whose turn is kept", ...usual, ...response },
    keeps: ["kept_id 2", "kept_turn 1", "kept_by_user 1"],
    sent: { ...sent.chatJson, beyond: sent.largeEnd },
    project: speaking("chat"),
    step: { of: responsesToChat, method: "translateWhole", known: "report" },
  },
  {
    ...{ name: "a whole message", ...usual, ...message, sent: sent.messageJson },
    step: { of: messagesFormat, method: "readResponse", known: "report" },
  },
  {
    ...{ name: "embeddings", ...usual, path: "/v1/embeddings", sent: sent.embeddingsJson },
    body: { model: "test-model", user: "ada", input: "Hi" },
    costs: { ...fixedCosts(millionths(1)), report: millionths(10) },
    step: { of: BodyScan.prototype, method: "push", known: "held" },
  },
  {
    ...{ name: "a whole chat whose upstream sends events", ...usual, ...chat },
    sent: sent.chatEvents,
    isReadByEvent: true,
    step: { of: chatFormat, method: "createAssembler", within: "add", known: "held" },
  },
  {
    ...{ name: "a transcript", ...usual, path: "/v1/audio/transcriptions" },
    body: { model: "an-ear", user: "ada" },
    file: wav(9.5),
    sent: sent.transcriptJson,
    costs: fixedCosts("0.001"),
    step: { of: BodyScan.prototype, method: "push", known: "held" },
  },
  {
    ...{ name: "an image", ...usual, path: "/v1/images/generations", sent: sent.imageJson },
    body: { model: "an-image", prompt: "a", user: "ada" },
    costs: { ...textCosts(), report: "0.040022", held: "0.052481" },
    step: { of: BodyScan.prototype, method: "end", known: "held" },
  },
  {
    ...{ name: "a whole chat from the cache", ...usual, ...chat, sent: sent.chatJson },
    isHit: true,
    project: cached,
    costs: textCosts({ held: 6, factor: 0.5 }),
    step: { of: UsageMeter.prototype, method: "addUsage", known: "held" },
  },
  {
    ...{ name: "a whole chat of the first target", ...usual, ...chat, ...routed },
    sent: sent.chatJson,
    routed: "first",
    step: { of: chatFormat, method: "readResponse", known: "report" },
  },
  {
    ...{ name: "a whole chat of the second target", ...usual, ...chat, ...routed },
    sent: sent.chatJson,
    routed: "second",
    step: { of: chatFormat, method: "readResponse", known: "report" },
  },
];

const streamedKinds: CallKind[] = [
  {
    ...{ name: "a streamed chat", ...streamed, ...streamedChat, sent: sent.chatEvents },
    keeps: ["cached_response 1"],
    project: cached,
    step: takesEvents(chatFormat),
  },
  {
    ...{ name: "a streamed chat of two choices, reported early", ...streamed, ...streamedChat },
    body: { ...streamedChat.body, n: 2 },
    sent: sent.earlyChatEvents,
    // The report of the prompt counts; what was held is charged only without a report.
    costs: { ...textCosts({ prompt: 10 }), held: millionths(20), prompt: millionths(8) },
    step: { of: chatFormat, method: "createStream", known: "prompt" },
  },
  {
    ...{ name: "a streamed message", ...streamed, ...message, sent: sent.messageEvents },
    body: { ...message.body, stream: true },
    step: takesEvents(messagesFormat),
  },
  {
    ...{ name: "a streamed response", ...streamed, ...response, sent: sent.responseEvents },
    keeps: ["kept_id 2"],
    body: { ...response.body, stream: true },
    step: takesEvents(responsesFormat),
  },
  {
    ...{ name: "a streamed chat over a bridge", ...streamed, ...streamedChat },
    sent: sent.messageEvents,
    project: speaking("messages"),
    step: { of: chatToMessages, method: "createTranslator", within: "take", known: "prompt" },
  },
  {
    ...{ name: "a streamed chat whose upstream sends JSON", ...streamed, ...streamedChat },
    sent: { ...sent.chatJson, beyond: sent.largeEnd },
    isReadByEvent: false,
    step: { of: chatFormat, method: "readResponse", known: "report" },
  },
  {
    ...{ name: "a streamed chat from the cache", ...streamed, ...streamedChat },
    sent: sent.chatJson,
    isHit: true,
    project: cached,
    costs: textCosts({ held: 6, factor: 0.5 }),
    step: takesEvents(chatFormat),
  },
  {
    ...{ name: "a streamed chat of the first target", ...streamed, ...streamedChat, ...routed },
    body: { ...routed.body, stream: true },
    sent: sent.chatEvents,
    routed: "first",
    step: takesEvents(chatFormat),
  },
  {
    ...{ name: "a streamed chat of the second target", ...streamed, ...streamedChat, ...routed },
    body: { ...routed.body, stream: true },
    sent: sent.chatEvents,
    routed: "second",
    step: takesEvents(chatFormat),
  },
];

const passing = { ...usual, gets: "passing" as const };
const passingKinds: CallKind[] = [
  {
    ...{ name: "a chat that is too large", ...passing, ...chat, sent: sent.largeChatJson },
    step: { of: BodyScan.prototype, method: "push", known: "held", isLate: true },
  },
  {
    ...{ name: "a sound", ...passing, path: "/v1/audio/speech", sent: sent.sound },
    body: { model: "a-voice", input: "Hi", voice: "v", user: "ada" },
    costs: fixedCosts("0.00003"),
    step: { of: speechFormat, method: "countOutput", known: "held", isLate: true },
  },
  {
    ...{ name: "a transcript as events", ...passing, path: "/v1/audio/transcriptions" },
    body: { model: "a-reading-ear", user: "ada", stream: "true" },
    file: wav(9.5),
    sent: sent.transcriptEvents,
    costs: { ...textCosts(), held: "0.002205" },
    step: { of: BodyScan.prototype, method: "push", known: "held", isLate: true },
  },
];

/** Every kind of body. */
export const callKinds: readonly CallKind[] = [...wholeKinds, ...streamedKinds, ...passingKinds];

/** The settings of a kind's project; `more` is added to each of its upstreams. */
export function projectOf({ project }: CallKind, more: Body): Body {
  const { upstreams, upstream = { url: "https://upstream.test/v1" } }: Body = project;
  const added = Object.entries<Body>(upstreams ?? {}).map(([name, one]) => [
    name,
    { ...one, ...more },
  ]);
  const where = upstreams
    ? { upstreams: Object.fromEntries(added) }
    : { upstream: { ...upstream, ...more } };
  return { pricing: { models }, ...project, ...where };
}
