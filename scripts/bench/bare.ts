// The cost of a proxy without metering: the same JSON parsed both ways, or a stream proxied unread,
// and nothing else; on GET, a stream without data. Prints its port; its argument is the upstream's
// port.
const [upstream = ""] = Deno.args;
Deno.serve({
  hostname: "127.0.0.1",
  port: 0,
  onListen: ({ port }) => console.log(port),
}, async (request) => {
  if (request.method === "GET") return new Response(new ReadableStream());
  const body = await request.json();
  const response = await fetch(`http://127.0.0.1:${upstream}/v1/chat/completions`, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json" },
  });
  if (body.stream) return new Response(response.body);
  return new Response(JSON.stringify(await response.json()), {
    headers: { "content-type": "application/json" },
  });
});
