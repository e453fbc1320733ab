// Reads what it is sent, JSON or a form, and does nothing else. Prints its port.
Deno.serve({
  hostname: "127.0.0.1",
  port: 0,
  onListen: ({ port }) => console.log(port),
}, async (request) => {
  const type = request.headers.get("content-type") ?? "";
  if (request.method === "GET") return new Response("");
  if (type.startsWith("multipart/")) await request.formData();
  else await request.json();
  return new Response("");
});
