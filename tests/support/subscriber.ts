import type { WebhookHttpRequest, WebhookHttpResponse } from "../../src/deps.ts";
import { faultOfDelivery } from "./api_document.ts";

/** One delivery as a subscriber received it. */
interface Received {
  url: string;
  addresses: readonly string[];
  headers: Record<string, string>;
  /** The raw body, and its JSON. */
  raw: string;
  // deno-lint-ignore no-explicit-any -- what a test reads of it, it asserts
  body: any;
  signal: AbortSignal;
}

type Reply = (
  received: Received,
) => Partial<WebhookHttpResponse> | Promise<Partial<WebhookHttpResponse>>;

/** Subscribers' servers, scripted; 200 by default. */
export interface SubscriberScript {
  received: Received[];
  /** Differences of the received events from the API document. */
  undocumented: string[];
  /** The types of the events received, in order. */
  types(): string[];
  /** Sets how deliveries from now on are answered. */
  reply(reply: Reply): void;
  /** Addresses of names; any other name is 93.184.216.34. */
  names: Map<string, string[]>;
  post(request: WebhookHttpRequest): Promise<WebhookHttpResponse>;
  resolve(host: string): Promise<string[]>;
}

export function createSubscriberScript(): SubscriberScript {
  const received: Received[] = [];
  const undocumented: string[] = [];
  const names = new Map<string, string[]>();
  let reply: Reply = () => ({});
  return {
    received,
    undocumented,
    names,
    types: () => received.map(({ body }) => body.event.type),
    reply: (next) => void (reply = next),
    async resolve(host) {
      const addresses = names.get(host) ?? ["93.184.216.34"];
      if (addresses.length === 0) throw new Error("ENOTFOUND");
      return addresses;
    },
    async post({ url, addresses, headers, body, signal }) {
      const got = { url: url.href, addresses, headers, raw: body, body: JSON.parse(body), signal };
      received.push(got);
      const fault = faultOfDelivery(headers, got.body);
      if (fault) undocumented.push(fault);
      const aborted = new Promise<never>((_, reject) =>
        signal.addEventListener("abort", () => reject(signal.reason), { once: true })
      );
      const answer = await Promise.race([reply(got), aborted]);
      return { status: 200, retryAfter: null, bodyHead: "ok", ...answer };
    },
  };
}
