import Anthropic from "@anthropic-ai/sdk";
import { type Conversation, importClient, type Program, weather } from "./program.ts";

const { name, description, parameters } = weather;
const tools = [{ name, description, input_schema: parameters }];

/** Anthropic's SDK for JavaScript; each turn sends all messages. */
export const anthropicJs: Program = {
  name: "anthropic-js",
  format: "messages",
  async begin(place): Promise<Conversation> {
    const { anthropic } = await importClient("anthropic-sdk", place);
    if (!(anthropic instanceof Anthropic)) throw new Error("the guide exports no client");
    const messages: Anthropic.MessageParam[] = [];
    const send = async (stream: boolean): Promise<string> => {
      const body = { model: "claude-sonnet-5-5", max_tokens: 1024, messages, tools };
      const message = stream
        ? await anthropic.messages.stream(body).finalMessage()
        : await anthropic.messages.create(body);
      const { role, content } = message;
      messages.push({ role, content });
      const calls = content.filter((block) => block.type === "tool_use");
      if (calls.length === 0) {
        return content.map((block) => (block.type === "text" ? block.text : "")).join("");
      }
      const results = calls.map(({ id: tool_use_id }) => (
        { type: "tool_result" as const, tool_use_id, content: weather.run() }
      ));
      messages.push({ role: "user", content: results });
      return await send(stream);
    };
    return {
      async ask(content, { stream }) {
        messages.push({ role: "user", content });
        return await send(stream);
      },
    };
  },
};
