import assert from "node:assert/strict";
import type { ReceivedCall } from "./upstream.ts";
import { createWorld, type World } from "./world.ts";

/** Two upstreams, `main` and `spare`. */
export const twoUpstreams = {
  main: { url: "https://main.example/v1", apiKey: "main-key" },
  spare: { url: "https://spare.example/v1", apiKey: "spare-key" },
};

const bounds = { maxOutputTokens: 1000, reasoning: false };
/** Prices of `a`, `b` and the usual model, per million tokens. */
export const routedModels = {
  "test-model": { input: "1", output: "2", ...bounds },
  a: { input: "3", output: "4", ...bounds },
  b: { input: "5", output: "6", ...bounds },
};

/** A world where `smart` leads to `a` of `main`, then to `b` of `spare`. Ada has 1. */
export async function routedWorld(project: Record<string, unknown> = {}): Promise<World> {
  const targets = [{ upstream: "main", model: "a" }, { upstream: "spare", model: "b" }];
  const world = await createWorld({
    project: {
      upstreams: twoUpstreams,
      routes: { smart: { targets } },
      pricing: { models: routedModels },
      ...project,
    },
  });
  await world.deposit("ada", "1");
  return world;
}

/** Answers one call of an upstream. */
export type Reply = (call: ReceivedCall) => Response | Promise<Response>;

/** Answers calls by the name of their upstream, which begins its host. */
export function replies(world: World, by: Record<string, Reply>): void {
  world.upstream.reply(async (call) => {
    const name = new URL(call.url).hostname.split(".")[0] ?? "";
    const reply = by[name];
    assert(reply, name);
    return await reply(call);
  });
}

/** An upstream that fails with this status. */
export const failing = (status: number, headers: Record<string, string> = {}) => () =>
  new Response(JSON.stringify({ error: { message: "down" } }), { status, headers });

/** The calls so far: `main a`. */
export const askedOf = ({ upstream: { calls } }: World): string[] =>
  calls.map(({ url, body }) => `${new URL(url).hostname.split(".")[0]} ${body?.model}`);
