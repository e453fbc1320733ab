const usage = { prompt_tokens: 20, completion_tokens: 10, total_tokens: 30 };
const created = 1767225600;
const words = ["one ", "two ", "three ", "four ", "five"];

/** A whole completion, as JSON text. */
export function jsonCompletion(model: string): string {
  const message = { role: "assistant", content: words.join("") };
  const choices = [{ index: 0, message, finish_reason: "stop" }];
  return JSON.stringify({
    id: "chatcmpl-1",
    object: "chat.completion",
    created,
    model,
    choices,
    usage,
  });
}

/** The events of a streamed one, up to `[DONE]`. */
export function streamedCompletion(model: string): string {
  const chunk = (fields: Record<string, unknown>) =>
    `data: ${
      JSON.stringify({
        id: "chatcmpl-1",
        object: "chat.completion.chunk",
        created,
        model,
        ...fields,
      })
    }\n\n`;
  const delta = (content: string | null, finish_reason: string | null) =>
    chunk({ choices: [{ index: 0, delta: content === null ? {} : { content }, finish_reason }] });
  const texts = words.map((word) => delta(word, null)).join("");
  return `${texts}${delta(null, "stop")}${chunk({ choices: [], usage })}data: [DONE]\n\n`;
}
