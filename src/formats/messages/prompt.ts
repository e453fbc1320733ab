import { isObject, type Json, plainText } from "../../base/json.ts";
import type { MediaPart, ModelRequest } from "../../inference/model_request.ts";
import { blocksOf, isMedia, messagesIn, stringsIn } from "./content.ts";
import { isPlainTool } from "./tools.ts";

/** Tokens that a template adds to each message, and to open the response. */
const perMessage = 4;
const perRequest = 3;

/** Tokens that a template adds to the messages. */
export function messageTemplateTokens({ body }: ModelRequest): number {
  return perRequest + perMessage * messagesIn(body.messages).length;
}

/** The most tokens of the system prompt that Anthropic adds where there are tools. */
const toolPromptTokens = 600;
/** The most tokens of the definition of a tool that a request names only by its type. */
const definedToolTokens = 1_500;
/** The most tokens of the instructions for an output format. */
const outputFormatTokens = 300;

/**
 * Tokens that the provider adds to a prompt and that the body's bytes do not bound: its own
 * instructions for tools, and definitions of tools such as `bash_20250124`.
 */
export function addedTokens({ body }: ModelRequest): number {
  const { tools, mcp_servers: servers, output_config: output, output_format: format } = body;
  const list = Array.isArray(tools) ? tools : [];
  const hasFormat = format !== undefined || (isObject(output) && output.format !== undefined);
  let tokens = hasFormat ? outputFormatTokens : 0;
  if (list.length > 0 || servers !== undefined) tokens += toolPromptTokens;
  for (const tool of list) if (!isPlainTool(tool)) tokens += definedToolTokens;
  return tokens;
}

/** Images and documents, also those in results of tools. */
export function* messageMediaParts({ body }: ModelRequest): Generator<MediaPart> {
  for (const { block, param, isWithinMedia } of blocksOf(body)) {
    if (isWithinMedia || !isMedia(block)) continue;
    // Only its strings, which are never longer than as received: a number may be written longer.
    const chars = stringsIn(block).reduce((sum, text) => sum + text.length, 0);
    yield { type: plainText(block.type), param, value: block, chars };
  }
}

/** Text of the system prompt, of messages, tools, and of other fields that a model reads. */
export function* messagePromptTexts({ body }: ModelRequest): Generator<string> {
  const texts: string[] = [];
  addTexts(texts, body.system);
  for (const { content } of messagesIn(body.messages)) addTexts(texts, content);
  yield* texts;
  for (const [name, value] of Object.entries(body)) {
    const mayBePrompt = typeof value === "string" || isObject(value) || Array.isArray(value);
    if (mayBePrompt && !outsidePrompt.has(name)) yield JSON.stringify(value);
  }
}

/** Fields that no model reads, and those that are counted on their own. */
const outsidePrompt = new Set(
  ("system messages model user metadata stop_sequences thinking service_tier speed inference_geo " +
    "container cache_control context_management mcp_servers diagnostics tool_choice").split(" "),
);

/** Members of blocks that are no text of the prompt. */
const silentMembers = new Set(["type", "cache_control", "id", "tool_use_id"]);

/** Adds the texts of blocks, without images and documents, whose size is bounded by itself. */
function addTexts(texts: string[], value: Json | undefined): void {
  if (typeof value === "string") texts.push(value);
  else if (Array.isArray(value)) { for (const item of value) addTexts(texts, item); }
  else if (isObject(value) && !isMedia(value)) {
    for (const [name, member] of Object.entries(value)) {
      // The input of a tool is JSON also for the model.
      if (name === "input" && isObject(member)) texts.push(JSON.stringify(member));
      else if (!silentMembers.has(name)) addTexts(texts, member);
    }
  }
}
