// The cost of a deposit without a ledger: its JSON is parsed, and a response sent. Prints its port.
Deno.serve({
  hostname: "127.0.0.1",
  port: 0,
  onListen: ({ port }) => console.log(port),
}, async (request) => Response.json(await request.json()));
