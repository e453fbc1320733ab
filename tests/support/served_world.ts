import { type Ran, runFarebox } from "./command.ts";
import { makeFolder } from "./process.ts";
import type { World } from "./world.ts";

/** The operator's commands against a world that is served on this machine. */
export interface ServedWorld extends AsyncDisposable {
  url: string;
  /** Runs a command, with `input` as its standard input. */
  run(args: readonly string[], input?: string): Promise<Ran>;
}

/** Serves a world at a port of this machine. */
export async function serveWorld(world: World): Promise<ServedWorld> {
  const stack = new AsyncDisposableStack();
  const folder = stack.use(await makeFolder());
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    (request, info) => world.app.fetch(request, info),
  );
  stack.defer(() => server.shutdown());
  const url = `http://127.0.0.1:${server.addr.port}`;
  return {
    url,
    run: (args, input = "") => runFarebox(args, { folder: folder.path, url, input }),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}
