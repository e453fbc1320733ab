/**
 * Sets the content length of a response to HEAD and cancels its body: Hono sends no body and leaves
 * it unread, so its source would wait for a reader. The length of a body in several pieces is
 * unknown.
 */
export async function measureBody({ body, headers }: Response): Promise<void> {
  if (!body) return;
  if (headers.has("content-length")) return await body.cancel();
  const reader = body.getReader();
  const { value, done } = await reader.read();
  // A text is one piece.
  if (done || (await reader.read()).done) headers.set("content-length", String(value?.length ?? 0));
  else await reader.cancel();
}

/** Keeps Deno from sending a content length of 0 where the length is unknown. */
export async function withUnknownLength(answering: Response | Promise<Response>) {
  const answer = await answering;
  if (answer.status !== 200 || answer.headers.has("content-length")) return answer;
  const nothing = new ReadableStream({ start: (controller) => controller.close() });
  return new Response(nothing, answer);
}
