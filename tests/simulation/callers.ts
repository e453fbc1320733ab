import { formatAmount } from "../../src/base/money.ts";
import { adminKey } from "../support/world.ts";
import type { Claim, ClaimsAudit, Outcome } from "./claims_audit.ts";
import { died, type Process } from "./process.ts";
import { modelName } from "./prices_audit.ts";
import type { Timeline } from "./timeline.ts";
import type { Violations } from "./violations.ts";

/** A project as its callers know it. */
export interface Project {
  id: string;
  apiKey: string;
  users: string[];
  /** Whether its money is in people's wallets. */
  shared: boolean;
  /** Ids of its active subscriptions, as far as their creation was acknowledged. */
  subscriptions: string[];
  /** Whether its archiving was acknowledged. */
  archived: boolean;
}

interface CallersOptions {
  timeline: Timeline;
  claims: ClaimsAudit;
  violations: Violations;
  /** Returns a process that is alive; null when there is none. */
  living(): Process | null;
}

type Answered = { status: number; headers: Headers; body: Record<string, unknown> };

const messages = [{ role: "user", content: "How many words do you know?" }];

/** All callers of the service: what they request, how they retry, when they disconnect. */
export class Callers {
  calls = 0;
  underWay = 0;
  readonly #options: CallersOptions;

  constructor(options: CallersOptions) {
    this.#options = options;
  }

  /** Sends one request; null when the connection broke, or there was no process. */
  async call(
    path: string,
    { method = "POST", key, body, headers = {} }: {
      method?: string;
      key: string;
      body?: unknown;
      headers?: Record<string, string>;
    },
  ): Promise<Answered | null> {
    const process = await this.#connect();
    if (!process) return null;
    const response = await this.#send(process, path, { method, key, headers, ...jsonOf(body) });
    const text = response && (await process.orDied(response.text()));
    if (!response || text === died) return null;
    return { status: response.status, headers: response.headers, body: JSON.parse(text ?? "") };
  }

  /** Opens a page, or sends its form; returns the response's headers, or null as for `call`. */
  async visit(
    path: string,
    { form = null, cookie }: { form?: Record<string, string> | null; cookie: string | null },
  ): Promise<Headers | null> {
    const process = await this.#connect();
    if (!process) return null;
    const response = await this.#send(process, path, {
      method: form ? "POST" : "GET",
      key: "none",
      text: form && new URLSearchParams(form).toString(),
      headers: {
        ...(form ? { "content-type": "application/x-www-form-urlencoded" } : {}),
        ...(cookie === null ? {} : { cookie }),
      },
    });
    response?.body?.cancel();
    return response?.headers ?? null;
  }

  /** Returns a process that is alive; like a load balancer, waits a while for one. */
  async #connect(): Promise<Process | null> {
    const { timeline, living } = this.#options;
    for (let tries = 0; tries < 40; tries++) {
      const process = living();
      if (process) return process;
      await timeline.pause(400);
    }
    return null;
  }

  async #send(
    process: Process,
    path: string,
    { method, key, text = null, headers, signal }: {
      method: string;
      key: string;
      text?: string | null;
      headers: Record<string, string>;
      signal?: AbortSignal;
    },
  ): Promise<Response | null> {
    this.calls++;
    const request = new Request(`http://farebox.test${path}`, {
      method,
      body: text,
      headers: {
        authorization: `Bearer ${key}`,
        ...(text === null
          ? {}
          : { "content-type": "application/json", "content-length": String(text.length) }),
        ...headers,
      },
      ...(signal ? { signal } : {}),
    });
    const response = await process.orDied(Promise.resolve(process.app.fetch(request)));
    if (response === died) return null;
    const { status } = response;
    const { violations } = this.#options;
    violations.must(
      status !== 500,
      "the service has no internal error",
      () => `${method} ${path}`,
    );
    return response;
  }

  /** A deposit, charge or refund: with a key, it is repeated until its outcome is known. */
  async money(
    project: Project,
    wish: {
      verb: "deposit" | "charge" | "refund";
      user: string;
      amount: bigint | null;
      activityId?: string;
      keyed: boolean;
      /** Another claim's key, reused for this one. */
      usedKey?: string;
    },
  ): Promise<void> {
    const { claims } = this.#options;
    const { verb, user, amount, activityId } = wish;
    const idempotencyKey = wish.usedKey ?? (wish.keyed ? `key-${claims.claims.length + 1}` : null);
    const afterEnd = project.archived && verb !== "refund" && wish.usedKey === undefined;
    const claim = claims.open({
      kind: verb,
      projectId: project.id,
      user,
      idempotencyKey,
      afterEnd,
    });
    const path = verb === "deposit" ? "/v1/user/balance/deposit" : `/v1/user/${verb}`;
    const body = {
      user,
      ...(amount === null ? {} : { amount: formatAmount(amount) }),
      ...(activityId === undefined ? {} : { activityId }),
      metadata: { claim: claim.n },
    };
    const headers = idempotencyKey === null
      ? undefined
      : { "idempotency-key": idempotencyKey } as Record<string, string>;
    await this.#untilKnown(claim, async () => {
      const answer = await this.call(path, {
        key: project.apiKey,
        body,
        ...(headers && { headers }),
      });
      return moneyOutcome(answer);
    });
    this.#end(claim);
  }

  /** Complete chats with a key are repeated too; others are sent once. */
  async chat(project: Project, user: string, { keyed }: { keyed: boolean }): Promise<void> {
    const { timeline, claims } = this.#options;
    const idempotencyKey = keyed ? `key-${claims.claims.length + 1}` : null;
    const claim = openChat(claims, project, { user, idempotencyKey });
    const body = { model: modelName, user, max_tokens: timeline.whole(20, 150), messages };
    await this.#untilKnown(claim, async () => {
      const answer = await this.call("/v1/chat/completions", {
        key: project.apiKey,
        body,
        headers: {
          "x-request-id": this.#nameTry(claim),
          ...(idempotencyKey === null ? {} : { "idempotency-key": idempotencyKey }),
        },
      });
      return chatOutcome(answer);
    });
    this.#end(claim);
  }

  #end(claim: Claim): void {
    const { timeline } = this.#options;
    claim.ended = true;
    timeline.trace.note(timeline.elapsed, describe(claim));
  }

  #nameTry({ n, requestIds }: Claim): string {
    const name = `try-${n}-${requestIds.length + 1}`;
    requestIds.push(name);
    return name;
  }

  /** A stream, read to its end or abandoned in the middle. */
  async stream(project: Project, user: string): Promise<void> {
    const { timeline, claims } = this.#options;
    const claim = openChat(claims, project, { user, idempotencyKey: null });
    const body = {
      model: modelName,
      user,
      stream: true,
      max_tokens: timeline.whole(20, 150),
      messages,
      ...(timeline.chance(0.5) ? { stream_options: { include_usage: true } } : {}),
    };
    const process = await this.#connect();
    const headers = { "x-request-id": this.#nameTry(claim) };
    const leave = new AbortController();
    const { signal } = leave;
    if (timeline.chance(0.1)) timeline.after(timeline.between(0, 700), () => leave.abort());
    const options = { method: "POST", key: project.apiKey, headers, signal, ...jsonOf(body) };
    const response = process && (await this.#send(process, "/v1/chat/completions", options));
    if (signal.aborted) response?.body?.cancel();
    const outcome: Outcome = process && response && !signal.aborted
      ? await this.#readStream(process, response)
      : { kind: "unknown" };
    claims.told(claim, outcome);
    this.#end(claim);
  }

  async #readStream(process: Process, response: Response): Promise<Outcome> {
    const { timeline } = this.#options;
    if (response.status !== 200) return failure(response.status);
    const reader = response.body?.getReader();
    if (!reader) return { kind: "unknown" };
    const leavesAfter = timeline.chance(0.25) ? timeline.whole(0, 6) : Infinity;
    const decoder = new TextDecoder();
    let text = "";
    for (let pieces = 0;; pieces++) {
      if (pieces >= leavesAfter) {
        reader.cancel();
        return { kind: "unknown" };
      }
      const read = await process.orDied(reader.read());
      if (read === died) return { kind: "unknown" };
      if (read.done) break;
      text += decoder.decode(read.value, { stream: true });
      // Some callers read slowly.
      if (timeline.chance(0.1)) await timeline.pause(timeline.between(1, 400));
    }
    if (response.headers.has("x-service-paywall")) return { kind: "refused" };
    const activityId = response.headers.get("x-service-activity-id") ?? "";
    // A stream without [DONE] ends with an error: what was produced before may be charged.
    if (!text.endsWith("data: [DONE]\n\n")) return { kind: "unknown" };
    return {
      kind: "booked",
      activityId,
      amount: /"cost_exact":"([\d.]+)"/.exec(text)?.[1] ?? null,
    };
  }

  async #untilKnown(claim: Claim, attempt: () => Promise<Outcome>): Promise<void> {
    const { timeline, claims } = this.#options;
    const triesMax = claim.idempotencyKey === null ? 1 : 5;
    for (let tries = 0; tries < triesMax; tries++) {
      if (tries > 0) await timeline.pause(timeline.between(5, 3_000));
      const outcome = await attempt();
      claims.told(claim, outcome);
      // Now and then a completed request is repeated.
      if (outcome.kind !== "unknown" && !timeline.chance(0.1)) return;
    }
  }

  /** An action of an operator. */
  operate(method: string, path: string, body: unknown): Promise<Answered | null> {
    return this.call(`/v1/admin/projects${path}`, { method, key: adminKey, body });
  }
}

function jsonOf(body: unknown): { text?: string } {
  return body === undefined ? {} : { text: JSON.stringify(body) };
}

function openChat(
  claims: ClaimsAudit,
  { id: projectId, archived: afterEnd }: Project,
  whose: Pick<Claim, "user" | "idempotencyKey">,
): Claim {
  return claims.open({ kind: "chat", projectId, afterEnd, ...whose });
}

function failure(status: number): Outcome {
  return status === 503 ? { kind: "unknown" } : { kind: "failed", status };
}

function moneyOutcome(answer: Answered | null): Outcome {
  if (!answer) return { kind: "unknown" };
  const { status, body } = answer;
  if (status !== 200) return failure(status);
  if (body.success !== true) return { kind: "refused" };
  return { kind: "booked", activityId: String(body.activityId), amount: String(body.amount) };
}

function chatOutcome(answer: Answered | null): Outcome {
  if (!answer) return { kind: "unknown" };
  const { status, headers, body } = answer;
  if (status !== 200) return failure(status);
  const activityId = headers.get("x-service-activity-id");
  if (activityId === null) return { kind: "refused" };
  const { usage } = body;
  const cost = typeof usage === "object" && usage ? Reflect.get(usage, "cost_exact") : null;
  return { kind: "booked", activityId, amount: String(cost) };
}

function describe({ n, kind, user, outcomes }: Claim): string {
  const told = outcomes.map((outcome) =>
    outcome.kind === "failed" ? `${outcome.status}` : outcome.kind
  );
  return `claim ${n} ${kind} of ${user}: ${told.join(", ")}`;
}
