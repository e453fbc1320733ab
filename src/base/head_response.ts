/**
 * Sets the length that an answer's body has, and leaves nothing of it: to a HEAD request Hono sends
 * none, and leaves it unread, so whatever stands behind it would wait for its reader. Of a body
 * that comes in more than one piece the length is not known.
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

/** Keeps Deno from telling 0 as the length of an answer whose length is not known. */
export async function withUnknownLength(answering: Response | Promise<Response>) {
  const answer = await answering;
  if (answer.status !== 200 || answer.headers.has("content-length")) return answer;
  const nothing = new ReadableStream({ start: (controller) => controller.close() });
  return new Response(nothing, answer);
}
