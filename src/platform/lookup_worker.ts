/// <reference lib="deno.worker" />
import { lookup } from "node:dns/promises";
import type { LookupAnswer, LookupQuestion } from "./lookup_messages.ts";

self.onmessage = async ({ data: { id, host } }: MessageEvent<LookupQuestion>) => {
  self.postMessage(await answerOf(id, host));
};

async function answerOf(id: number, host: string): Promise<LookupAnswer> {
  try {
    const found = await lookup(host, { all: true });
    return { id, addresses: found.map(({ address }) => address) };
  } catch (error) {
    return { id, message: error instanceof Error ? error.message : String(error) };
  }
}
