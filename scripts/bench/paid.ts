import type { Load } from "./processes.ts";
import { startService } from "./service.ts";

/** The length of a turn, in seconds. */
export const turnSeconds = 3;
/** V8 keeps compiling hot code for about this long. */
export const warmUpSeconds = 20;
const path = "/v1/chat/completions";

/** Describes a load of chats on the server at a port. */
export function chatLoad(
  at: { port: number; key?: string },
  { users = 500, connections = 64, seconds = turnSeconds }: Partial<Load>,
): Load {
  const headers = at.key === undefined ? {} : { authorization: `Bearer ${at.key}` };
  return { port: at.port, path, headers, kind: "chat", users, connections, seconds };
}

/** Starts a service with that upstream, and with balances for this many users. */
export async function startPaid(
  upstreamPort: number,
  folder: string,
  users = 500,
  env: Record<string, string> = {},
  root?: string,
) {
  const service = await startService(
    {
      UPSTREAM_URL: `http://127.0.0.1:${upstreamPort}/v1`,
      LOG_LEVEL: "info",
      ...env,
    },
    folder,
    root ? { root } : {},
  );
  for (let n = 0; n < users; n += 50) {
    await Promise.all(
      Array.from(
        { length: Math.min(50, users - n) },
        (_, at) =>
          service.json("/v1/user/balance/deposit", { user: `user-${n + at}`, amount: "1000" }),
      ),
    );
  }
  return Object.assign(service, { port: Number(new URL(service.url).port) });
}
