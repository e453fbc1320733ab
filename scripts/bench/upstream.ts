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
const whole = jsonResponse(body);
const created_at = 1767225600;
const details = { input_tokens_details: { cached_tokens: 0 } };
const outputDetails = { output_tokens_details: { reasoning_tokens: 0 } };
/** Stands for a number in ids that are never the same twice. */
const sameLength = "0000000000";
let made = 0;

/** Responses with the same text in formats other than chat, by the end of their paths. */
const inFormats: [string, Uint8Array][] = [
  ["/responses", {
    id: `resp_${sameLength}`,
    object: "response",
    created_at,
    status: "completed",
    model: "m",
    output: [{
      id: `msg_${sameLength}`,
      type: "message",
      status: "completed",
      role: "assistant",
      content: [{ type: "output_text", text: content, annotations: [] }],
    }],
    usage: { input_tokens: 25, ...details, output_tokens: 12, ...outputDetails, total_tokens: 37 },
  }],
  ["/messages", {
    id: "msg_bench",
    type: "message",
    role: "assistant",
    model: "m",
    content: [{ type: "text", text: content }],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: { input_tokens: 25, output_tokens: 12 },
  }],
  ["/embeddings", {
    object: "list",
    data: [{ object: "embedding", index: 0, embedding: content }],
    model: "m",
    usage: { prompt_tokens: 25, total_tokens: 25 },
  }],
].map(([path, value]) => [String(path), jsonResponse(JSON.stringify(value))]);

function jsonResponse(text: string): Uint8Array {
  return encoder.encode(
    `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n` +
      text,
  );
}

/** The response to a request, by its first line. */
function responseTo(head: string): Uint8Array {
  const line = head.slice(0, head.indexOf(" HTTP/1.1"));
  const found = inFormats.find(([path]) => line.endsWith(path));
  if (!found) return whole;
  const [path, bytes] = found;
  if (path !== "/responses") return bytes;
  const number = String(made++).padStart(sameLength.length, "0");
  return encoder.encode(decoder.decode(bytes).replaceAll(sameLength, number));
}

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
      const head = text.slice(0, end);
      const request = text.slice(end + 4, end + 4 + size);
      text = text.slice(end + 4 + size);
      if (/"stream": *true/.test(request)) await stream(connection);
      else await connection.write(responseTo(head));
    }
  }
}

const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
console.log((listener.addr as Deno.NetAddr).port);
for await (const connection of listener) serve(connection).catch(() => {});
