import type { CallOptions, World } from "./world.ts";

export const completionsPath = "/v1/chat/completions";

/** What Ada asks for, unless said otherwise; our own count makes its prompt 8 tokens. */
export function chatBody(fields: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    model: "test-model",
    messages: [{ role: "user", content: "Hi" }],
    user: "ada",
    ...fields,
  };
}

/** Asks, and reads the JSON of the answer. */
export function chat(
  world: World,
  fields: Record<string, unknown> = {},
  options: CallOptions = {},
) {
  return world.json(completionsPath, { body: chatBody(fields), ...options });
}

/** Asks for a stream. */
export function chatStream(
  world: World,
  fields: Record<string, unknown> = {},
  options: CallOptions = {},
): Promise<Response> {
  return world.call(completionsPath, { body: chatBody({ stream: true, ...fields }), ...options });
}

/** What answers were charged for, newest first. */
export async function usageOf(world: World, user = "ada") {
  return (await world.activities(user)).filter(({ kind }) => kind === "usage");
}

/** Moves the clock step by step until the work is done. */
export async function until<T>(world: World, work: Promise<T>, stepMs = 1_000): Promise<T> {
  let done = false;
  const noted = work.finally(() => (done = true));
  noted.catch(() => {});
  for (let step = 0; !done && step < 100; step++) await world.clock.advance(stepMs);
  return await noted;
}

/** Cuts a body's bytes where a test says how a caller reads them: one read each. */
export function openReader(response: Response) {
  const reader = response.body?.getReader();
  if (!reader) throw new Error("the response has no body");
  const decoder = new TextDecoder();
  return {
    /** The next bytes as text, or null at the end. */
    async read(): Promise<string | null> {
      const { done, value } = await reader.read();
      return done ? null : decoder.decode(value, { stream: true });
    },
    leave: () => reader.cancel(),
  };
}
