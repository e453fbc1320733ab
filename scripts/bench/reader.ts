// What a deposit costs of which nothing is booked: its JSON is read, and answered with. Says its
// port.
Deno.serve({
  hostname: "127.0.0.1",
  port: 0,
  onListen: ({ port }) => console.log(port),
}, async (request) => Response.json(await request.json()));
