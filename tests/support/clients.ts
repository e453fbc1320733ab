import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { ChatOpenAI } from "@langchain/openai";
import { generateText, jsonSchema, streamText, tool, type ToolSet } from "ai";
import OpenAI from "openai";
import type { World } from "./world.ts";

/** Where a client sends its calls. */
export interface Line {
  baseURL: string;
  apiKey: string;
  fetch: typeof fetch;
}

/** Through the service. Retries are told to happen at once. */
export function throughService(world: World): Line {
  return {
    baseURL: "http://localhost/v1",
    apiKey: world.apiKey,
    fetch: async (input, init) => retryingAtOnce(await world.app.fetch(new Request(input, init))),
  };
}

/** Straight to the scripted upstream. */
export function direct(world: World): Line {
  return {
    baseURL: "https://upstream.test/v1",
    apiKey: "upstream-secret-key",
    fetch: async (input, init) => {
      const request = new Request(input, init);
      const { url, method, headers, signal } = request;
      const bytes = await request.bytes();
      const body = new TextDecoder().decode(bytes);
      const sent = { url, method, headers, body, bytes, signal };
      return retryingAtOnce(await world.upstream.answer(sent));
    },
  };
}

function retryingAtOnce(response: Response): Response {
  response.headers.set("retry-after-ms", "1");
  return response;
}

/** The result that a client got. */
interface Verdict {
  text: string;
  finish: unknown;
  /** Prompt and completion tokens, where the client reports them. */
  tokens: [number | undefined, number | undefined] | null;
  calls: { name: string; input: unknown }[];
}

/** A client that sends one prompt, and returns its result. */
export type Asker = (line: Line, options?: AskOptions) => Promise<Verdict>;

export interface AskOptions {
  tools?: boolean;
  maxRetries?: number;
}

const defaultHeaders = { "x-service-user": "ada" };
const question = "Hi";
const weather = {
  name: "weather",
  description: "Tells the weather",
  parameters: {
    type: "object" as const,
    properties: { city: { type: "string" as const } },
    required: ["city"],
  },
};
const functionTool = { type: "function" as const, function: weather };

export function openaiClient({ baseURL, apiKey, fetch }: Line, maxRetries = 0): OpenAI {
  const dangerouslyAllowBrowser = true;
  return new OpenAI({
    baseURL,
    apiKey,
    fetch,
    maxRetries,
    defaultHeaders,
    dangerouslyAllowBrowser,
  });
}

const messages = [{ role: "user" as const, content: question }];

function openaiBody(tools: boolean | undefined) {
  return { model: "test-model", messages, ...(tools ? { tools: [functionTool] } : {}) };
}

function openaiVerdict(completion: OpenAI.ChatCompletion): Verdict {
  const [choice] = completion.choices;
  const { usage } = completion;
  return {
    text: choice?.message.content ?? "",
    finish: choice?.finish_reason,
    tokens: usage ? [usage.prompt_tokens, usage.completion_tokens] : null,
    calls: (choice?.message.tool_calls ?? []).flatMap((call) =>
      call.type === "function"
        ? [{ name: call.function.name, input: JSON.parse(call.function.arguments) }]
        : []
    ),
  };
}

const askOpenai: Asker = async (line, { tools, maxRetries } = {}) =>
  openaiVerdict(
    await openaiClient(line, maxRetries).chat.completions.create(openaiBody(tools)),
  );

/** Reads a stream as typical code does, which expects a choice in every chunk. */
const streamOpenai: Asker = async (line, { tools, maxRetries } = {}) => {
  const stream = await openaiClient(line, maxRetries).chat.completions.create({
    ...openaiBody(tools),
    stream: true,
  });
  const verdict: Verdict = { text: "", finish: null, tokens: null, calls: [] };
  for await (const { choices: [choice] } of stream) {
    if (!choice) throw new Error("a chunk without a choice");
    verdict.text += choice.delta.content ?? "";
    verdict.finish = choice.finish_reason ?? verdict.finish;
    for (const call of choice.delta.tool_calls ?? []) {
      const made = verdict.calls[call.index] ??= { name: "", input: "" };
      made.name += call.function?.name ?? "";
      made.input += call.function?.arguments ?? "";
    }
  }
  for (const call of verdict.calls) call.input = JSON.parse(String(call.input));
  return verdict;
};

const runnerOpenai: Asker = async (line, { tools, maxRetries } = {}) => {
  const stream_options = { include_usage: true };
  const runner = openaiClient(line, maxRetries).chat.completions
    .stream({ ...openaiBody(tools), stream_options });
  return openaiVerdict(await runner.finalChatCompletion());
};

function aiModel({ baseURL, apiKey, fetch }: Line) {
  const provider = createOpenAICompatible({
    name: "farebox",
    baseURL,
    apiKey,
    fetch,
    headers: defaultHeaders,
    includeUsage: true,
  });
  return provider("test-model");
}

const { name, description, parameters } = weather;
const inputSchema = jsonSchema<{ city: string }>(parameters);
const aiTools: ToolSet = { [name]: tool({ description, inputSchema }) };

function aiSettings(line: Line, { tools, maxRetries = 0 }: AskOptions = {}) {
  const prompt = question;
  return { model: aiModel(line), prompt, maxRetries, ...(tools ? { tools: aiTools } : {}) };
}

const askAi: Asker = async (line, options) => {
  const { text, finishReason, usage, toolCalls } = await generateText(aiSettings(line, options));
  return {
    text,
    finish: finishReason,
    tokens: [usage.inputTokens, usage.outputTokens],
    calls: toolCalls.map(({ toolName, input }) => ({ name: toolName, input })),
  };
};

const streamAi: Asker = async (line, options) => {
  let failure: unknown = null;
  const result = streamText({
    ...aiSettings(line, options),
    onError: ({ error }) => void (failure = error),
  });
  const verdict: Verdict = { text: "", finish: null, tokens: null, calls: [] };
  for await (const part of result.fullStream) {
    if (part.type === "text-delta") verdict.text += part.text;
    if (part.type === "tool-call") verdict.calls.push({ name: part.toolName, input: part.input });
    if (part.type === "finish") {
      verdict.finish = part.finishReason;
      verdict.tokens = [part.totalUsage.inputTokens, part.totalUsage.outputTokens];
    }
  }
  if (failure) throw failure;
  return verdict;
};

function langchain({ baseURL, apiKey, fetch }: Line, { tools, maxRetries = 0 }: AskOptions = {}) {
  const dangerouslyAllowBrowser = true;
  const model = new ChatOpenAI({
    model: "test-model",
    apiKey,
    maxRetries,
    configuration: { baseURL, fetch, defaultHeaders, dangerouslyAllowBrowser },
  });
  return tools ? model.bindTools([functionTool]) : model;
}

interface LangchainAnswer {
  text: string;
  response_metadata: Record<string, unknown>;
  usage_metadata?: { input_tokens: number; output_tokens: number } | undefined;
  tool_calls?: { name: string; args: unknown }[] | undefined;
}

function langchainVerdict(answer: LangchainAnswer): Verdict {
  const { text, response_metadata, usage_metadata, tool_calls } = answer;
  return {
    text,
    finish: response_metadata.finish_reason,
    tokens: usage_metadata ? [usage_metadata.input_tokens, usage_metadata.output_tokens] : null,
    calls: (tool_calls ?? []).map(({ name, args }) => ({ name, input: args })),
  };
}

const askLangchain: Asker = async (line, options) =>
  langchainVerdict(await langchain(line, options).invoke(question) as LangchainAnswer);

const streamLangchain: Asker = async (line, options) => {
  let whole = null;
  for await (const piece of await langchain(line, options).stream(question)) {
    whole = whole ? whole.concat(piece) : piece;
  }
  if (!whole) throw new Error("no answer at all");
  return langchainVerdict(whole as LangchainAnswer);
};

/** Clients that read a complete response. */
export const wholeAskers: Record<string, Asker> = {
  openai: askOpenai,
  "AI SDK": askAi,
  LangChain: askLangchain,
};

/** Clients that read a stream. */
export const streamAskers: Record<string, Asker> = {
  openai: streamOpenai,
  "openai .stream()": runnerOpenai,
  "AI SDK": streamAi,
  LangChain: streamLangchain,
};
