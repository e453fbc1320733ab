import { inTurn } from "./chat.ts";
import { chatLoad, startPaid } from "./paid.ts";
import { type Figure, show } from "./figures.ts";
import { startProcess } from "./processes.ts";
import { firstMatch, makeFolder } from "./service.ts";

const gateway = "@portkey-ai/gateway@1.15.2";

/** Starts a gateway from npm that does not meter; needs Node's `npx`. */
async function startGateway() {
  const port = freePort();
  const child = new Deno.Command("npx", {
    args: ["-y", gateway, `--port=${port}`, "--headless"],
    stdout: "piped",
    stderr: "null",
  }).spawn();
  await firstMatch(child.stdout, /(Ready for connections)/);
  return {
    port,
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await child.status;
    },
  };
}

function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return (listener.addr as Deno.NetAddr).port;
}

/** Measures metered chats against a well-known gateway that does not meter. */
export async function benchPeers(): Promise<Figure[]> {
  await using upstream = await startProcess("upstream.ts");
  await using peer = await startGateway();
  await using bare = await startProcess("bare.ts", upstream.port);
  using folder = makeFolder();
  await using service = await startPaid(upstream.port, folder.path);
  const toPeer = chatLoad(peer, {});
  toPeer.headers = {
    authorization: "Bearer none",
    "x-portkey-provider": "openai",
    "x-portkey-custom-host": `http://127.0.0.1:${upstream.port}/v1`,
  };
  const [theirs, ours, most] = await inTurn([
    toPeer,
    chatLoad(service, {}),
    chatLoad(bare, {}),
  ]);
  if (!theirs || !ours || !most) throw new Error("three were measured");
  const ratio = ours.ofFirst;
  const figures: Figure[] = [
    { name: `${gateway}, 64 connections`, value: theirs.perSecond, unit: "/s" },
    { name: "its p99", value: theirs.p99, unit: "ms" },
    { name: "metered chats", value: ours.perSecond, unit: "/s" },
    {
      name: "their p99",
      value: ours.p99,
      unit: "ms",
      bar: "lower",
      ok: ours.p99 < theirs.p99,
    },
    { name: "their ratio", value: ratio, unit: "", bar: "at least 10", ok: ratio >= 10 },
    { name: "that of the bare proxy, which only parses", value: most.ofFirst, unit: "" },
  ];
  figures.forEach(show);
  return figures;
}
