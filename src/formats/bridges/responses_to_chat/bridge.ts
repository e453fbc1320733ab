import { isObject } from "../../../base/json.ts";
import { encodeUtf8 } from "../../../base/utf8.ts";
import type { Bridge, BridgeOptions } from "../../../inference/format.ts";
import { invalidUpstreamResponse } from "../../../upstreams/errors.ts";
import { bridgedChoice } from "../chat_reading.ts";
import { chatUpstream } from "../chat_upstream.ts";
import { chatChoice } from "../../chat/choice.ts";
import { readChoicesBody } from "../../openai/response.ts";
import { servedBy, usageIn } from "../../openai/usage.ts";
import { writeMessage } from "./chat_message.ts";
import { writeChatBody } from "./request_body.ts";
import { finishReasonOf, ResponseWriter } from "./response_writer.ts";
import { ChatStreamTranslator } from "./stream.ts";

/**
 * Lets an upstream that only speaks chat completions answer requests of `/responses`. It keeps
 * nothing of a response.
 */
export const responsesToChat: Bridge = {
  format: chatUpstream,
  writeBody: writeChatBody,
  translateWhole,
  createTranslator: (options) => new ChatStreamTranslator(options),
};

function translateWhole(bytes: Uint8Array, options: BridgeOptions): Uint8Array {
  const { request, head, apiKey } = options;
  const { body, choices: [sent = null] } = readChoicesBody(bytes, apiKey);
  const choice = bridgedChoice(sent, options);
  if (!choice) throw invalidUpstreamResponse("a choice without a message");
  const writer = new ResponseWriter({ request, head, emit: () => {} });
  const { model, tier } = servedBy(body);
  writer.begin({ model, service_tier: tier });
  const [{ delta: message }] = chatChoice.asChunks(choice);
  if (isObject(message)) writeMessage(writer, message, choice.logprobs);
  const response = writer.finish(finishReasonOf(choice), usageIn(body) ?? null);
  return encodeUtf8(JSON.stringify(response));
}
