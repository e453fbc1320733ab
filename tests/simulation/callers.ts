import { formatAmount } from "../../src/base/money.ts";
import { adminKey } from "../support/world.ts";
import type { Claim, ClaimsAudit, Outcome } from "./claims_audit.ts";
import { died, type Process } from "./process.ts";
import { type ModelFormat, pickFormat } from "../support/model_formats.ts";
import type { Timeline } from "./timeline.ts";
import type { Violations } from "./violations.ts";

/** A project as its callers know it. */
export interface Project {
  id: string;
  apiKey: string;
  /** A key with a budget of its own, for a part of the calls. */
  budgetKey: string;
  users: string[];
  /** Whether its money is in people's wallets. */
  shared: boolean;
  /** Ids of its active subscriptions, as far as their creation was acknowledged. */
  subscriptions: string[];
  /** Whether its archiving was acknowledged. */
  archived: boolean;
  /** Whether a route leads to several upstreams. */
  isRouted: boolean;
}

interface CallersOptions {
  timeline: Timeline;
  claims: ClaimsAudit;
  violations: Violations;
  /** Returns a process that is alive; null when there is none. */
  living(): Process | null;
}

type Answered = { status: number; headers: Headers; body: Record<string, unknown> };

/** All callers of the service: what they request, how they retry, when they disconnect. */
export class Callers {
  calls = 0;
  underWay = 0;
  /** Ids of responses that callers got, whose they are, newest last. */
  readonly #responses: KnownResponse[] = [];
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
    const key = this.#pickKey(project);
    await this.#untilKnown(claim, async () => {
      const answer = await this.call(path, {
        key,
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
    const format = pickFormat(timeline, false);
    const previous = this.#pickPrevious(format, project);
    const cap = timeline.whole(20, 150);
    const body = { ...format.body({ user, stream: false, cap }), ...continuing(previous) };
    const key = this.#pickKey(project);
    await this.#untilKnown(claim, async () => {
      const answer = await this.call(`/v1${format.path}`, {
        key,
        body,
        headers: {
          "x-service-user": user,
          "x-request-id": this.#nameTry(claim),
          ...(idempotencyKey === null ? {} : { "idempotency-key": idempotencyKey }),
        },
      });
      const outcome = chatOutcome(answer);
      this.#learn(outcome, { project, user, previous, id: answer?.body.id });
      return outcome;
    });
    this.#end(claim);
  }

  /** A response to continue: now and then another user's. */
  #pickPrevious(format: ModelFormat, project: Project): KnownResponse | null {
    const { timeline } = this.#options;
    if (format.path !== "/responses" || this.#responses.length === 0) return null;
    if (timeline.chance(0.5)) return null;
    const recent = this.#responses.filter(({ projectId }) => projectId === project.id).slice(-6);
    return recent.length > 0 ? timeline.pick(recent) : null;
  }

  /** Remembers a response's id, and checks whose response was continued. */
  #learn(outcome: Outcome, { project, user, previous, id }: {
    project: Project;
    user: string;
    previous: KnownResponse | null;
    id: unknown;
  }): void {
    const { violations } = this.#options;
    const about = () => `${user} ${JSON.stringify(previous)} ${JSON.stringify(outcome)}`;
    if (previous) {
      const isServed = outcome.kind === "booked" || outcome.kind === "refused";
      const isOwn = previous.user === user && previous.projectId === project.id;
      violations.must(isOwn || !isServed, "nobody continues another user's response", about);
      const isUnknown = outcome.kind === "failed" && outcome.status === 400;
      violations.must(
        !isOwn || !isUnknown || !project.users.includes(user),
        "a charged response can be continued",
        about,
      );
    }
    if (outcome.kind !== "booked" || typeof id !== "string" || !id.startsWith("resp_")) return;
    this.#responses.push({ id, user, projectId: project.id });
  }

  #pickKey({ apiKey, budgetKey }: Project): string {
    return this.#options.timeline.chance(0.3) ? budgetKey : apiKey;
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
    const format = pickFormat(timeline, true);
    const previous = this.#pickPrevious(format, project);
    const cap = timeline.whole(20, 150);
    const body = { ...format.body({ user, stream: true, cap }), ...continuing(previous) };
    const process = await this.#connect();
    const headers = { "x-request-id": this.#nameTry(claim), "x-service-user": user };
    const leave = new AbortController();
    const { signal } = leave;
    if (timeline.chance(0.1)) timeline.after(timeline.between(0, 700), () => leave.abort());
    const key = this.#pickKey(project);
    const options = { method: "POST", key, headers, signal, ...jsonOf(body) };
    const response = process && (await this.#send(process, `/v1${format.path}`, options));
    if (signal.aborted) response?.body?.cancel();
    const { outcome, text } = process && response && !signal.aborted
      ? await this.#readStream(process, response, format)
      : unread;
    const id = /"id":\s*"(resp_\w+)"/.exec(text)?.[1];
    this.#learn(outcome, { project, user, previous, id });
    claims.told(claim, outcome);
    this.#end(claim);
  }

  async #readStream(
    process: Process,
    response: Response,
    format: ModelFormat,
  ): Promise<ReadStream> {
    const { timeline } = this.#options;
    if (response.status !== 200) return { outcome: failure(response.status), text: "" };
    const reader = response.body?.getReader();
    if (!reader) return unread;
    const leavesAfter = timeline.chance(0.25) ? timeline.whole(0, 6) : Infinity;
    const decoder = new TextDecoder();
    let text = "";
    for (let pieces = 0;; pieces++) {
      if (pieces >= leavesAfter) {
        reader.cancel();
        return unread;
      }
      const read = await process.orDied(reader.read());
      if (read === died) return unread;
      if (read.done) break;
      text += decoder.decode(read.value, { stream: true });
      // Some callers read slowly.
      if (timeline.chance(0.1)) await timeline.pause(timeline.between(1, 400));
    }
    if (response.headers.has("x-service-paywall")) return { outcome: { kind: "refused" }, text };
    const activityId = response.headers.get("x-service-activity-id") ?? "";
    // A stream without its end ends with an error: what was produced before may be charged.
    if (!format.hasEnded(text)) return { outcome: { kind: "unknown" }, text };
    const amount = /"cost_exact":"([\d.]+)"/.exec(text)?.[1] ?? null;
    return { outcome: { kind: "booked", activityId, amount }, text };
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

/** A response that a caller got, by its id. */
interface KnownResponse {
  id: string;
  user: string;
  projectId: string;
}

/** What a caller has read of a stream. */
interface ReadStream {
  outcome: Outcome;
  text: string;
}

const unread: ReadStream = { outcome: { kind: "unknown" }, text: "" };

function continuing(previous: KnownResponse | null): { previous_response_id?: string } {
  return previous ? { previous_response_id: previous.id } : {};
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
  const { status, headers } = answer;
  if (status === 402) return { kind: "refused" };
  if (status !== 200) return failure(status);
  const activityId = headers.get("x-service-activity-id");
  if (activityId === null) return { kind: "refused" };
  return { kind: "booked", activityId, amount: headers.get("x-service-cost") };
}

function describe({ n, kind, user, outcomes }: Claim): string {
  const told = outcomes.map((outcome) =>
    outcome.kind === "failed" ? `${outcome.status}` : outcome.kind
  );
  return `claim ${n} ${kind} of ${user}: ${told.join(", ")}`;
}
