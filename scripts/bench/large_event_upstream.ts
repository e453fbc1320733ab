// An upstream whose streams have one large event, and whose whole responses are small. Prints its
// port.
const [chars = "7000000"] = Deno.args;
const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
const choice = (more: Record<string, unknown>) => ({ choices: [{ index: 0, ...more }] });
const whole = {
  ...choice({ message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }),
  usage,
};
const large = JSON.stringify(choice({ delta: { content: "x".repeat(Number(chars)) } }));
const last = JSON.stringify({ ...choice({ delta: {}, finish_reason: "stop" }), usage });
const events = new TextEncoder().encode(
  `data: ${large}\n\ndata: ${last}\n\ndata: [DONE]\n\n`,
);
const pieceBytes = 65_536;

function stream(): Response {
  let at = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const part = events.slice(at, at + pieceBytes);
      at += part.length;
      if (part.length > 0) controller.enqueue(part);
      else controller.close();
    },
  }, { highWaterMark: 0 });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

Deno.serve({
  hostname: "127.0.0.1",
  port: 0,
  onListen: ({ port }) => console.log(port),
}, async (request) => {
  const { stream: isStream } = await request.json();
  return isStream ? stream() : Response.json(whole);
});
