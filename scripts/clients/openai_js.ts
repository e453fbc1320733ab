import OpenAI from "openai";
import { type Conversation, importClient, type Place, type Program, weather } from "./program.ts";

const model = "gpt-4o-mini";
const { name, description, parameters } = weather;

async function clientAt(place: Place): Promise<OpenAI> {
  const { openai } = await importClient("openai-sdk", place);
  if (!(openai instanceof OpenAI)) throw new Error("the guide exports no client");
  return openai;
}

/** OpenAI's SDK for JavaScript with responses; each turn names the response before. */
export const openaiJs: Program = {
  name: "openai-js",
  format: "responses",
  async begin(place): Promise<Conversation> {
    const openai = await clientAt(place);
    const tools = [{ type: "function" as const, name, description, parameters, strict: true }];
    let previous: string | null = null;
    const send = async (
      input: OpenAI.Responses.ResponseInput,
      stream: boolean,
    ): Promise<OpenAI.Responses.Response> => {
      const body = { model, input, tools, previous_response_id: previous };
      const response = stream
        ? await openai.responses.stream(body).finalResponse()
        : await openai.responses.create(body);
      previous = response.id;
      const calls = response.output.flatMap((item) =>
        item.type === "function_call" ? [item.call_id] : []
      );
      if (calls.length === 0) return response;
      const results = calls.map((call_id) => (
        { type: "function_call_output" as const, call_id, output: weather.run() }
      ));
      return await send(results, stream);
    };
    return {
      ask: async (content, { stream }) =>
        (await send([{ role: "user", content }], stream)).output_text,
    };
  },
};

/** OpenAI's SDK for JavaScript with chat completions; each turn sends all messages. */
export const openaiJsChat: Program = {
  name: "openai-js-chat",
  format: "chat",
  async begin(place): Promise<Conversation> {
    const openai = await clientAt(place);
    const tools = [{ type: "function" as const, function: { name, description, parameters } }];
    const messages: OpenAI.ChatCompletionMessageParam[] = [];
    const send = async (stream: boolean): Promise<string> => {
      const body = { model, messages, tools };
      const completion = stream
        ? await openai.chat.completions.stream(body).finalChatCompletion()
        : await openai.chat.completions.create(body);
      const message = completion.choices[0]?.message;
      if (!message) throw new Error("no choice");
      messages.push(message);
      const calls = message.tool_calls ?? [];
      if (calls.length === 0) return message.content ?? "";
      for (const { id: tool_call_id } of calls) {
        messages.push({ role: "tool", tool_call_id, content: weather.run() });
      }
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
