// An upstream that costs almost nothing: raw connections, one prepared response. Prints its port.
// Streams on request: number of tokens and tokens per second are its arguments.
const [tokens = 100, perSecond = 50] = Deno.args.map(Number);
const encoder = new TextEncoder();
const decoder = new TextDecoder();
const usage = { prompt_tokens: 25, completion_tokens: 12, total_tokens: 37 };
const content = "The weather in Paris is mild today, with a light breeze from the west.";
const body = JSON.stringify({
  id: "chatcmpl-bench",
  object: "chat.completion",
  created: 1767225600,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
  usage,
});
const whole = encoder.encode(
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
);
const streamHead =
  "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const chunkOf = (text: string) => encoder.encode(`${text.length.toString(16)}\r\n${text}\r\n`);
const frame = (delta: unknown, finish: string | null, more = {}) =>
  `data: ${
    JSON.stringify({
      id: "chatcmpl-bench",
      object: "chat.completion.chunk",
      created: 1767225600,
      model: "m",
      choices: [{ index: 0, delta, finish_reason: finish }],
      ...more,
    })
  }\n\n`;
const last = frame({}, "stop") +
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", choices: [], usage })}\n\n` +
  "data: [DONE]\n\n";

async function stream(connection: Deno.TcpConn): Promise<void> {
  const token = chunkOf(frame({ content: "word " }, null));
  const startedAt = performance.now();
  await connection.write(encoder.encode(streamHead));
  for (let sent = 0; sent < tokens; sent++) {
    const wait = startedAt + (sent * 1000) / perSecond - performance.now();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    await connection.write(token);
  }
  await connection.write(chunkOf(last));
  await connection.write(encoder.encode("0\r\n\r\n"));
}

async function serve(connection: Deno.TcpConn): Promise<void> {
  connection.setNoDelay(true);
  const buffer = new Uint8Array(64 * 1024);
  let text = "";
  for (;;) {
    const length = await connection.read(buffer);
    if (length === null) return;
    text += decoder.decode(buffer.subarray(0, length));
    for (;;) {
      const end = text.indexOf("\r\n\r\n");
      const size = Number(/content-length: *(\d+)/i.exec(text.slice(0, end))?.[1] ?? 0);
      if (end < 0 || text.length < end + 4 + size) break;
      const request = text.slice(end + 4, end + 4 + size);
      text = text.slice(end + 4 + size);
      if (/"stream": *true/.test(request)) await stream(connection);
      else await connection.write(whole);
    }
  }
}

const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
console.log((listener.addr as Deno.NetAddr).port);
for await (const connection of listener) serve(connection).catch(() => {});
