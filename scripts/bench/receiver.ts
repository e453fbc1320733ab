// A subscriber over TLS in its own process. Prints its port, then reads commands from standard
// input: "report" prints what was received since the last one as a line of JSON.
const [certPath = "", keyPath = ""] = Deno.args;
const now = () => performance.timeOrigin + performance.now();

let latencies: number[] = [];
const seen = new Set<string>();
let received = 0;
let duplicates = 0;

const server = Deno.serve({
  hostname: "127.0.0.1",
  port: 0,
  cert: Deno.readTextFileSync(certPath),
  key: Deno.readTextFileSync(keyPath),
  onListen: ({ port }) => console.log(port),
}, async (request) => {
  const { event } = await request.json();
  received++;
  if (seen.has(event.id)) duplicates++;
  seen.add(event.id);
  const { scheduled } = event.metadata;
  if (typeof scheduled === "number") latencies.push(now() - scheduled);
  return new Response();
});

for await (const _ of Deno.stdin.readable) {
  console.log(JSON.stringify({ received, duplicates, latencies }));
  latencies = [];
}
await server.shutdown();
