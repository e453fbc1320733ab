import type { CallOptions, World } from "./world.ts";

export const completionsPath = "/v1/chat/completions";

/** Ada's default request; our own count makes its prompt 8 tokens. */
export function chatBody(fields: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    model: "test-model",
    messages: [{ role: "user", content: "Hi" }],
    user: "ada",
    ...fields,
  };
}

/** Sends a chat, and reads the JSON of the response. */
export function chat(
  world: World,
  fields: Record<string, unknown> = {},
  options: CallOptions = {},
) {
  return world.json(completionsPath, { body: chatBody(fields), ...options });
}

/** Sends a chat that streams, and leaves the clock alone. */
export function callStream(
  world: World,
  fields: Record<string, unknown> = {},
  options: CallOptions = {},
): Promise<Response> {
  return chatStream(world, fields, { ...options, keepClock: true });
}

/** Sends a chat that streams. */
export function chatStream(
  world: World,
  fields: Record<string, unknown> = {},
  options: CallOptions = {},
): Promise<Response> {
  return world.call(completionsPath, { body: chatBody({ stream: true, ...fields }), ...options });
}

/** Returns the usage of charged responses, newest first. */
export async function usageOf(world: World, user = "ada") {
  return (await world.activities(user)).filter(({ kind }) => kind === "usage");
}

/** Advances the clock step by step until the work is done. */
export async function until<T>(world: World, work: Promise<T>, stepMs = 1_000): Promise<T> {
  let done = false;
  const noted = work.finally(() => (done = true));
  noted.catch(() => {});
  for (let step = 0; !done && step < 100; step++) await world.clock.advance(stepMs);
  return await noted;
}

/** Splits a body's bytes as a caller would read them: one read each. */
export function openReader(response: Response) {
  const reader = response.body?.getReader();
  if (!reader) throw new Error("the response has no body");
  const decoder = new TextDecoder();
  return {
    /** Returns the next bytes as text, or null at the end. */
    async read(): Promise<string | null> {
      const { done, value } = await reader.read();
      return done ? null : decoder.decode(value, { stream: true });
    },
    leave: () => reader.cancel(),
  };
}
