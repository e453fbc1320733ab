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
  return world.call(completionsPath, { body: chatBody({ stream: true, ...fields }), ...options });
}

/**
 * Sends a chat that streams. The response begins with the first event; where the upstream sends
 * none, the clock is moved to when it begins without one.
 */
export async function chatStream(
  world: World,
  fields: Record<string, unknown> = {},
  options: CallOptions = {},
): Promise<Response> {
  const before = world.upstream.calls.length;
  let hasBegun = false;
  const pending = callStream(world, fields, options).finally(() => (hasBegun = true));
  pending.catch(() => {});
  for (let turn = 0; turn < 100 && !hasBegun; turn++) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  if (hasBegun || world.upstream.calls.length === before) return await pending;
  await world.clock.advance(2_000);
  return await withoutKeepAlive(await pending);
}

/** A response that began without an event, after the keep-alive that it began with. */
async function withoutKeepAlive(response: Response): Promise<Response> {
  const reader = response.body?.getReader();
  if (!reader || response.status !== 200) return response;
  await reader.read();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  }, { highWaterMark: 0 });
  return new Response(body, response);
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
