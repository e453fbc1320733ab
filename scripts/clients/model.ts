// The model of the scripted provider: what it says depends only on the conversation.
import { isObject, type Json, type JsonObject } from "../../src/base/json.ts";

/** A conversation as the model reads it, whatever format it came in. */
interface Transcript {
  /** What the user said, in order. */
  prompts: string[];
  /** What the last tool returned, when the conversation ends with it. */
  toolResult: string | null;
  /** Names of the functions that the model may call. */
  tools: string[];
}

/** What the model says: a text, or one call of a function with its arguments. */
export type Reply = { text: string } | { call: { name: string; arguments: JsonObject } };

/** The arguments that the model gives the functions of the programs that are tried. */
const knownTools: Readonly<Record<string, JsonObject>> = {
  weather: { city: "Oslo" },
  Bash: { command: "echo tool-ran", description: "Says a word" },
  exec_command: { cmd: "echo tool-ran" },
  shell_command: { command: "echo tool-ran" },
  shell: { command: ["echo", "tool-ran"] },
};

/** What a prompt says to make the model call a function. */
export const asksForTool = "use the tool";

/**
 * Replies with the words `word-…` of the last prompt and of the earlier ones, so that a test sees
 * what arrived; to a prompt that asks for a tool with a call of one.
 */
export function replyTo({ prompts, toolResult, tools }: Transcript): Reply {
  if (toolResult !== null) return { text: `The tool said: ${toolResult.slice(0, 200)}` };
  const last = prompts.at(-1) ?? "";
  const name = tools.find((tool) => Object.hasOwn(knownTools, tool));
  if (last.includes(asksForTool) && name !== undefined) {
    return { call: { name, arguments: knownTools[name] ?? {} } };
  }
  const [earlier, now] = [wordsOf(prompts.slice(0, -1)), wordsOf([last])];
  const before = earlier.length > 0 ? ` Before that: ${earlier.join(", ")}.` : "";
  return { text: `Heard ${now.join(", ") || "nothing"}.${before}` };
}

function wordsOf(texts: readonly string[]): string[] {
  return [...new Set(texts.flatMap((text) => text.match(/\bword-[a-z]+/g) ?? []))];
}

/** The text of a message's content: a text, or parts of which some have one. */
export function textOf(content: Json | undefined): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part) => isObject(part) && typeof part.text === "string" ? part.text : "")
    .join("\n");
}

/** The objects of a list; nothing where it is no list. */
export function objectsOf(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** A text as a stream sends it. */
export function piecesOf(text: string): string[] {
  return text.match(/\S+\s*/g) ?? [];
}

/** An error that the provider answers with. */
export class ProviderError extends Error {
  readonly status: number;
  readonly param: string | null;

  constructor(status: number, message: string, param: string | null = null) {
    super(message);
    this.status = status;
    this.param = param;
  }
}

let made = 0;

/** A new id, such as `msg_0001`. */
export function newId(prefix: string): string {
  return `${prefix}${String(++made).padStart(24, "0")}`;
}

/** A stream of events, as text: their name, if the format has one, and their data. */
export function eventStream(events: readonly { event?: string; data: Json }[]): Response {
  const text = events.map(({ event, data }) =>
    `${event === undefined ? "" : `event: ${event}\n`}data: ${
      typeof data === "string" ? data : JSON.stringify(data)
    }\n\n`
  );
  const body = ReadableStream.from(text).pipeThrough(new TextEncoderStream());
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}
