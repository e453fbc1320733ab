import { badRequest } from "../../../base/errors.ts";
import { isObject, type Json, type JsonObject } from "../../../base/json.ts";
import { withReasoningOfCalls } from "../chat_reasoning.ts";
import { customArguments } from "../custom_tool.ts";
import { chatContent, readOutput, textsOfContent, withPartsBefore } from "./content.ts";
import { noCompaction, nothingKept, notInChat, typeName } from "./not_in_chat.ts";
import { type ChatReasoning, unpackReasoning } from "./reasoning.ts";
import { chatNameOf, type ToolTable } from "./tools.ts";

/**
 * The instructions and the input of a request as chat messages. Throws 400 for items that a chat
 * cannot have.
 *
 * Every system and developer message becomes part of one system message at the beginning: the
 * templates of many models accept no other. An output of a tool follows the message with its call,
 * and the images and files of outputs are what the user says next.
 */
export function writeMessages(body: JsonObject, table: ToolTable): JsonObject[] {
  const { input, instructions } = body;
  const conversation = new Conversation(table);
  if (typeof instructions === "string") conversation.addSystem(instructions);
  else if (instructions !== undefined && instructions !== null) {
    throw badRequest("instructions", "'instructions' must be a text.");
  }
  if (typeof input === "string") conversation.addUser(input);
  else if (Array.isArray(input)) addItems(conversation, input, keptReasoningFrom(body, input));
  else throw badRequest("input", "'input' must be a text or a list of items.");
  return conversation.messages();
}

/**
 * The first item whose reasoning is carried back without a call beside it. As models expect, that
 * is of the turn which the last message of the user began, unless the request asks for that of all
 * turns.
 */
function keptReasoningFrom({ reasoning }: JsonObject, input: readonly Json[]): number {
  if (isObject(reasoning) && reasoning.context === "all_turns") return 0;
  return input.findLastIndex((item) => isObject(item) && item.role === "user") + 1;
}

function addItems(conversation: Conversation, input: readonly Json[], reasoningFrom: number): void {
  for (const [index, item] of input.entries()) {
    const param = `input.${index}`;
    if (!isObject(item)) throw badRequest(param, `'${param}' must be an object.`);
    const { encrypted_content: content } = item;
    const type = typeOfItem(item);
    switch (type) {
      case "message":
        addMessage(conversation, item, param);
        break;
      case "function_call":
      case "custom_tool_call":
        conversation.addCall(item, param);
        break;
      case "function_call_output":
      case "custom_tool_call_output":
        conversation.addOutput(item, param);
        break;
      case "reasoning": {
        // Other servers' reasoning means nothing to this one, as after any change of the model.
        const own = unpackReasoning(content);
        if (own) conversation.addReasoning(own, index >= reasoningFrom);
        break;
      }
      case "item_reference":
        throw nothingKept(param);
      case "compaction_trigger":
        throw noCompaction(param);
      default:
        throw notInChat(param, `an item of the type '${typeName(type)}'`);
    }
  }
}

/** The type of an item, which clients may leave out. */
function typeOfItem({ type, role, id }: JsonObject): Json {
  if (type !== undefined && type !== null) return type;
  return role === undefined && typeof id === "string" ? "item_reference" : "message";
}

function addMessage(
  conversation: Conversation,
  { role, content }: JsonObject,
  param: string,
): void {
  const place = `${param}.content`;
  switch (role) {
    case "system":
    case "developer":
      return conversation.addSystem(textsOfContent(content, place).join("\n"));
    case "user":
      return conversation.addUser(chatContent(content, place));
    case "assistant":
      return conversation.addAnswer(textsOfContent(content, place).join(""));
    default:
      throw badRequest(
        `${param}.role`,
        `'${param}.role' must be user, assistant, system or developer.`,
      );
  }
}

/** An assistant's message with the items that it stands for. */
interface Answer {
  text: string | null;
  reasoning: ChatReasoning | null;
  isCurrent: boolean;
  calls: JsonObject[];
  /** The messages with what its calls returned. */
  outputs: JsonObject[];
  /** Images and files that its calls returned, each call's after its id. */
  media: JsonObject[];
}

class Conversation {
  readonly #table: ToolTable;
  readonly #system: string[] = [];
  readonly #steps: (JsonObject | Answer)[] = [];
  /** The answer that further items of the assistant belong to. */
  #open: Answer | null = null;
  readonly #answerOfCall = new Map<string, Answer>();

  constructor(table: ToolTable) {
    this.#table = table;
  }

  addSystem(text: string): void {
    if (text !== "") this.#system.push(text);
  }

  addUser(content: Json): void {
    this.#open = null;
    this.#steps.push({ role: "user", content });
  }

  /** A message after another one is a message of its own; one beside calls belongs to them. */
  addAnswer(text: string): void {
    const answer = this.#answer((open) => open.text !== null && open.calls.length === 0);
    answer.text = answer.text === null ? text : `${answer.text}\n\n${text}`;
  }

  /** Reasoning that is not `current` goes back only beside calls, where many servers demand it. */
  addReasoning(reasoning: ChatReasoning, isCurrent: boolean): void {
    const answer = this.#answer((open) => open.text !== null && open.calls.length === 0);
    const { reasoning: before } = answer;
    const text = before ? `${before.text}\n\n${reasoning.text}` : reasoning.text;
    const blocks = [...before?.blocks ?? [], ...reasoning.blocks ?? []];
    answer.reasoning = { field: before?.field ?? reasoning.field, text, blocks };
    answer.isCurrent ||= isCurrent;
  }

  addCall(item: JsonObject, param: string): void {
    const id = textField(item, "call_id", param);
    const name = textField(item, "name", param);
    const namespace = typeof item.namespace === "string" ? item.namespace : null;
    const written = item.type === "custom_tool_call"
      ? JSON.stringify(customArguments(textField(item, "input", param)))
      : textField(item, "arguments", param);
    const called = { name: chatNameOf(this.#table, { name, namespace }), arguments: written };
    const answer = this.#answer(() => false);
    answer.calls.push({ id, type: "function", function: called });
    this.#answerOfCall.set(id, answer);
  }

  addOutput(item: JsonObject, param: string): void {
    const id = textField(item, "call_id", param);
    const answer = this.#answerOfCall.get(id);
    if (!answer) {
      throw badRequest(
        `${param}.call_id`,
        `No tool call found for the output with the call_id '${id.slice(0, 64)}'.`,
      );
    }
    if (answer === this.#open) this.#open = null;
    const { text, media } = readOutput(item.output, `${param}.output`);
    answer.outputs.push({ role: "tool", tool_call_id: id, content: text });
    if (media.length === 0) return;
    answer.media.push({ type: "text", text: `[result of ${id}]` }, ...media);
  }

  messages(): JsonObject[] {
    const system = this.#system.length > 0
      ? [{ role: "system", content: this.#system.join("\n\n") }]
      : [];
    const messages: JsonObject[] = system;
    let media: JsonObject[] = [];
    const showMedia = () => {
      if (media.length > 0) messages.push({ role: "user", content: media });
      media = [];
    };
    for (const step of this.#steps) {
      if (isAnswer(step)) {
        showMedia();
        messages.push(...written(step));
        media = step.media;
      } else {
        const { content = "" } = step;
        messages.push(
          media.length > 0 ? { ...step, content: withPartsBefore(media, content) } : step,
        );
        media = [];
      }
    }
    showMedia();
    return withReasoningOfCalls(messages);
  }

  /** The open answer, or a new one where there is none, or it `isOver`. */
  #answer(isOver: (open: Answer) => boolean): Answer {
    if (this.#open && !isOver(this.#open)) return this.#open;
    const answer: Answer = {
      ...{ text: null, reasoning: null, isCurrent: false },
      ...{ calls: [], outputs: [], media: [] },
    };
    this.#open = answer;
    this.#steps.push(answer);
    return answer;
  }
}

function isAnswer(step: JsonObject | Answer): step is Answer {
  return "outputs" in step;
}

/** An answer as messages. Reasoning without a message or a call is none. */
function written({ text, reasoning, isCurrent, calls, outputs }: Answer): JsonObject[] {
  if (text === null && calls.length === 0) return [];
  const given = isCurrent || calls.length > 0 ? reasoning : null;
  return [{
    role: "assistant",
    content: text,
    ...(given?.field ? { [given.field]: given.text } : {}),
    ...(given?.blocks?.length ? { thinking_blocks: [...given.blocks] } : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  }, ...outputs];
}

function textField(item: JsonObject, field: string, param: string): string {
  const text = item[field];
  if (typeof text === "string") return text;
  throw badRequest(`${param}.${field}`, `'${param}.${field}' must be a text.`);
}
