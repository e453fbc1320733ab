import type { Clock } from "../../base/clock.ts";
import { TimeSlice } from "../../base/time_slice.ts";
import { formatAmount } from "../../base/money.ts";
import { tokenCounts } from "../../base/token_classes.ts";
import { pricesOnlyUnits } from "../../pricing/price.ts";
import { corsHeaders, type HeaderList } from "../../base/response.ts";
import { activityIdOfRequest } from "../../ledger/entry.ts";
import { abortError } from "../../upstreams/client.ts";
import { isOurFault, upstreamDisconnected } from "../../upstreams/errors.ts";
import { rateHeaders } from "../admit/rate_limiter.ts";
import type { LargeBody } from "../ask/read_whole.ts";
import type { AdmittedCall } from "../call.ts";
import { arrived, cutBy } from "../finish/ending.ts";
import { finishCall, type FinishServices } from "../finish/finish_call.ts";
import { billOf } from "../meter/bill.ts";
import { BodyScan } from "../meter/body_scan.ts";
import { noteUncounted } from "../meter/note_passed.ts";
import type { InferenceServices } from "../services.ts";
import { PacedBody } from "./paced_body.ts";
import { targetHeaders } from "./written_response.ts";

/** Headers of a whole response that is passed on unparsed, as far as known before its charge. */
export function largeHeaders(
  services: Pick<InferenceServices, "prices">,
  call: AdmittedCall,
  large: LargeBody,
): Headers {
  return new Headers({
    ...corsHeaders,
    "content-type": "application/json",
    ...bodyHeaders(large),
    "x-request-id": call.requestId,
    ...costHeader(services, call, large),
    "x-service-activity-id": activityIdOfRequest(call.id),
    ...rateHeaders(call.rateLimits),
    ...targetHeaders(call),
    ...(call.idempotency ? { "idempotency-stored": "false" } : {}),
  });
}

/** The content type of a passed on body, and `x-service-unparsed` where it has no format. */
export function bodyHeaders({ type, format }: LargeBody): HeaderList {
  return {
    ...(type === undefined ? {} : { "content-type": type }),
    ...(format ? {} : { "x-service-unparsed": "true" }),
  };
}

/** The header with the cost, where the request alone decides it; otherwise none. */
function costHeader(
  services: Pick<InferenceServices, "prices">,
  call: AdmittedCall,
  { format }: LargeBody,
): HeaderList {
  const { attempt: { target: { terms: { price } } } } = call;
  if (format?.unit !== "characters" || !pricesOnlyUnits(price)) return {};
  const usage = { ...tokenCounts({}), source: "provider" as const };
  return { "x-service-cost": formatAmount(billOf(services, call, usage).cost) };
}

/**
 * A whole response that is too large to be parsed: its bytes are passed on as they arrive, and what
 * it costs is read from them. It is charged before its last bytes are sent, also when its client
 * has disconnected. `onEnd` is called after that.
 */
export function largeResponse(
  services: FinishServices,
  call: AdmittedCall,
  { large, headers, onEnd }: { large: LargeBody; headers: Headers; onEnd: () => void },
): Response {
  const { request, attempt: { controller: { signal }, meter } } = call;
  const { clock } = services.deps;
  const body = new PacedBody({ clock, request, signal, onDisconnect() {} });
  const stream = body.start(async () => {
    try {
      await passAndCharge(services, call, { large, body });
    } catch (error) {
      // Nobody has read what has passed to its end.
      meter.noteUnreadOutput();
      await finishCall(services, call, cutBy(error, true)).catch(() => {});
      body.breakOff(error);
    } finally {
      onEnd();
    }
  });
  return new Response(stream, { headers });
}

async function passAndCharge(
  services: FinishServices,
  call: AdmittedCall,
  { large, body }: { large: LargeBody; body: PacedBody },
): Promise<void> {
  const passing = new Passing(call, { large, body, clock: services.deps.clock });
  let error: unknown = null;
  try {
    await passing.run();
  } catch (reason) {
    if (isOurFault(reason)) throw reason;
    error = reason;
  }
  passing.note();
  await finishCall(services, call, error === null ? arrived() : cutBy(error, true));
  if (error !== null) return body.breakOff(error);
  body.send(passing.last);
  body.close();
}

/** Passes a body on as it arrives, and reads what it reports. Its last piece is kept back. */
class Passing {
  readonly #call: AdmittedCall;
  readonly #large: LargeBody;
  readonly #body: PacedBody;
  readonly #clock: Clock;
  /** Null for what has no report: what sound and plain text say is content. */
  readonly #scan: BodyScan | null;
  #bytes: number;
  /** The last piece. */
  last: Uint8Array;

  constructor(
    call: AdmittedCall,
    { large, body, clock }: { large: LargeBody; body: PacedBody; clock: Clock },
  ) {
    this.#call = call;
    this.#large = large;
    this.#body = body;
    this.#clock = clock;
    this.#scan = large.kind === "sound" || large.kind === "text" ? null : new BodyScan(call);
    this.last = large.start;
    this.#bytes = large.start.length;
  }

  async run(): Promise<void> {
    const { kind } = this.#large;
    await this.#scanStart();
    for (let piece = await this.#next(); piece; piece = await this.#next()) {
      this.#body.send(this.last);
      // A piece is valid until the next read only, and the last one is sent after the charge.
      this.last = piece.slice();
      this.#bytes += piece.length;
      this.#scan?.push(this.last);
      if (kind === "events" && !mayEnd(this.last)) {
        this.#body.send(this.last);
        this.last = nothing;
      }
      await this.#body.untilDemand();
    }
    this.#call.attempt.controller.signal.throwIfAborted();
  }

  /** Adds to the call's meter what the body has reported. */
  note(): void {
    this.#scan?.end();
    const { start, format } = this.#large;
    noteUncounted(this.#call, format, { start, bytes: this.#bytes });
  }

  async #next(): Promise<Uint8Array | null | undefined> {
    try {
      return await this.#large.rest?.read();
    } catch (cause) {
      throw abortError(this.#call.attempt.controller.signal) ?? upstreamDisconnected(cause);
    }
  }

  async #scanStart(): Promise<void> {
    const scan = this.#scan;
    if (!scan) return;
    const { start } = this.#large;
    const slice = new TimeSlice(this.#clock);
    for (let from = 0; from < start.length; from += scannedAtOnce) {
      if (slice.expired) await slice.yield();
      scan.push(start.subarray(from, from + scannedAtOnce));
    }
  }
}

const nothing = new Uint8Array();

/** Bytes that are scanned before other requests may run. */
const scannedAtOnce = 256 * 1024;

/** Whether a piece of events may hold their last one. The others are sent as they arrive. */
function mayEnd(piece: Uint8Array): boolean {
  return /\.done"|\.completed"|"usage"|\[DONE\]|error/.test(new TextDecoder().decode(piece));
}
