import type { WebhookHttpRequest, WebhookHttpResponse } from "../../src/deps.ts";
import type { Holder } from "./store_line.ts";
import type { Timeline } from "./timeline.ts";

/** How a receiver responds. */
export type Manner = "good" | "failing" | "flaky" | "slow" | "hanging" | "permanent" | "throttled";

/** One attempt as its receiver saw it. */
export interface Post {
  deliveryId: string;
  eventId: string;
  /** The number of the attempt, as the payload states. */
  attempt: number;
  by: string;
  /** When, by the sender's clock. */
  startedAt: number;
  endedAt: number | null;
  /** Null when there was no response. */
  status: number | null;
  retryAfterMs: number;
  /** Whether a stored result belongs to it. */
  counted: boolean;
}

const head =
  /^\{"delivery":\{"id":"(\w+)","subscriptionId":"\w+","attempts":(\d+),.*?\},"event":\{"id":"(\w+)"/;

/** The subscribers' servers, each with its own ledger of deliveries. */
export class Receivers {
  readonly posts = new Map<string, Post[]>();
  readonly manners = new Map<string, Manner>();
  /** Called with each attempt before the response. */
  onPost: (post: Post, before: Post | undefined) => void = () => {};
  readonly #timeline: Timeline;

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  post(holder: Holder, { url, body, signal }: WebhookHttpRequest): Promise<WebhookHttpResponse> {
    if (holder.dead) return new Promise(() => {});
    const timeline = this.#timeline;
    const [, deliveryId = "", attempt = "", eventId = ""] = head.exec(body) ?? [];
    const post: Post = {
      deliveryId,
      eventId,
      attempt: Number(attempt),
      by: holder.name,
      startedAt: holder.now(),
      endedAt: null,
      status: null,
      retryAfterMs: 0,
      counted: false,
    };
    const own = this.posts.get(deliveryId) ?? [];
    this.posts.set(deliveryId, own);
    this.onPost(post, own.at(-1));
    own.push(post);
    const answer = this.#answer(this.manners.get(url.hostname) ?? "good");
    timeline.trace.note(
      timeline.elapsed,
      `${holder.name} post ${deliveryId} ${attempt}: ${answer.status ?? "none"}`,
    );
    return new Promise((resolve, reject) => {
      signal.addEventListener("abort", () => {
        post.endedAt ??= holder.now();
        reject(signal.reason);
      }, { once: true });
      timeline.after(answer.ms, () => {
        // A receiver that responds too late has accepted it, but the sender does not know.
        if (signal.aborted) return;
        post.endedAt = holder.now();
        post.status = answer.status;
        post.retryAfterMs = answer.retryAfter === null ? 0 : answer.retryAfter * 1_000;
        if (holder.dead) return;
        if (answer.status === null) return reject(new TypeError("connection reset"));
        const retryAfter = answer.retryAfter === null ? null : String(answer.retryAfter);
        resolve({ status: answer.status, retryAfter, bodyHead: "" });
      });
    });
  }

  #answer(manner: Manner): { status: number | null; ms: number; retryAfter: number | null } {
    const timeline = this.#timeline;
    const quick = timeline.between(1, 80);
    const failure = () => timeline.pick([500, 502, 503, 302, 408, null]);
    switch (manner) {
      case "good":
        return { status: 200, ms: quick, retryAfter: null };
      case "failing":
        return { status: failure(), ms: quick, retryAfter: null };
      case "flaky":
        return { status: timeline.chance(0.5) ? 204 : failure(), ms: quick, retryAfter: null };
      case "slow":
        return { status: 200, ms: timeline.between(300, 14_000), retryAfter: null };
      case "hanging":
        return { status: 200, ms: 20_000, retryAfter: null };
      case "permanent":
        return {
          status: timeline.pick([400, 401, 403, 404, 410, 422]),
          ms: quick,
          retryAfter: null,
        };
      case "throttled":
        return { status: timeline.pick([429, 503]), ms: quick, retryAfter: timeline.whole(5, 40) };
    }
  }
}
