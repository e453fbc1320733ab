/**
 * Waits for a streamed response, which begins with its first output. Where the upstream sends none,
 * `advance` moves the clock to when the response begins without one, with a keep-alive, which is
 * taken off.
 */
export async function beginStream(
  responding: Promise<Response>,
  { hasUpstream, advance }: { hasUpstream(): boolean; advance(ms: number): Promise<void> },
): Promise<Response> {
  let hasBegun = false;
  const pending = responding.finally(() => (hasBegun = true));
  pending.catch(() => {});
  for (let turn = 0; turn < 100 && !hasBegun; turn++) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  if (hasBegun || !hasUpstream()) return await pending;
  await advance(2_000);
  return await withoutKeepAlive(await pending);
}

async function withoutKeepAlive(response: Response): Promise<Response> {
  const reader = response.body?.getReader();
  if (!reader || response.status !== 200) return response;
  const first = await reader.read();
  const isKeepAlive = new TextDecoder().decode(first.value) === ": keep-alive\n\n";
  let begun = isKeepAlive ? null : first;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = begun ?? await reader.read();
      begun = null;
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  }, { highWaterMark: 0 });
  return new Response(body, response);
}
