import {
  generateText,
  jsonSchema,
  type LanguageModel,
  type ModelMessage,
  stepCountIs,
  streamText,
  tool,
} from "ai";
import { type Conversation, importClient, type Program, weather } from "./program.ts";

const { description, parameters, run } = weather;
const inputSchema = jsonSchema<{ city: string }>(parameters);
const tools = { weather: tool({ description, inputSchema, execute: run }) };
const stopWhen = stepCountIs(3);

/** A conversation that keeps the messages as the AI SDK gives them back. */
function converse(model: LanguageModel, { store = true } = {}): Conversation {
  const messages: ModelMessage[] = [];
  return {
    async ask(content, { stream }) {
      messages.push({ role: "user", content });
      const providerOptions = { openai: { store } };
      const settings = { model, messages, tools, stopWhen, providerOptions };
      const { text, response } = stream
        ? await streamedText(settings)
        : await generateText(settings);
      messages.push(...response.messages);
      return text;
    },
  };
}

async function streamedText(settings: Parameters<typeof streamText>[0]) {
  let failure: unknown = null;
  const result = streamText({
    ...settings,
    onError: ({ error }) => void (failure = error),
  });
  await result.consumeStream();
  if (failure) throw failure;
  return { text: await result.text, response: await result.response };
}

function isModel(value: unknown): value is LanguageModel {
  return typeof value === "object" && value !== null && "doGenerate" in value;
}

async function modelOf(name: string, place: Parameters<Program["begin"]>[0]) {
  const model = (await importClient("vercel-ai-sdk", place))[name];
  if (!isModel(model)) throw new Error(`the guide exports no ${name}`);
  return model;
}

/** Vercel's AI SDK with its provider for OpenAI, which calls responses. */
export const aiSdkOpenai: Program = {
  name: "ai-sdk-openai",
  format: "responses",
  begin: async (place) => converse(await modelOf("openaiModel", place)),
};

/** The AI SDK with texts in place of ids, for providers that keep no responses. */
export const aiSdkStateless: Program = {
  name: "ai-sdk-openai-stateless",
  format: "responses",
  begin: async (place) => converse(await modelOf("openaiModel", place), { store: false }),
};

/** Vercel's AI SDK with its provider for Anthropic. */
export const aiSdkAnthropic: Program = {
  name: "ai-sdk-anthropic",
  format: "messages",
  begin: async (place) => converse(await modelOf("anthropicModel", place)),
};
