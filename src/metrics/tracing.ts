import {
  type Attributes,
  type Context,
  context,
  propagation,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import type { RequestUpstream, UpstreamRequest, UpstreamResponse } from "../deps.ts";

/** One piece of work in a trace, and the steps that it is made of. */
export class TraceSpan {
  readonly #span: Span;
  readonly #context: Context;
  #step: { span: Span; context: Context } | null = null;

  constructor(span: Span, around: Context) {
    this.#span = span;
    this.#context = trace.setSpan(around, span);
  }

  /** Begins a step of it, and ends the one before. */
  step(name: string): void {
    this.#step?.span.end();
    const span = tracer.startSpan(name, {}, this.#context);
    this.#step = { span, context: trace.setSpan(this.#context, span) };
  }

  /** Does work of the current step: what it asks of other servers belongs to it. */
  run<T>(work: () => T): T {
    return context.with(this.#step?.context ?? this.#context, work);
  }

  set(attributes: Attributes): void {
    for (const [name, value] of Object.entries(attributes)) {
      this.#span.setAttribute(name, typeof value === "string" ? cut(value) : value ?? "");
    }
  }

  /** Ends it and its last step; with a fault, as one that failed. */
  end(fault: string | null = null): void {
    if (fault !== null) this.#span.setStatus({ code: SpanStatusCode.ERROR, message: cut(fault) });
    this.#step?.span.end();
    this.#span.end();
  }
}

/** Traces, by Deno's own OpenTelemetry. */
export interface Tracing {
  /** Names the server's own span by the address of the route map, and gives its trace's id. */
  request(method: string, route: string): string | null;
  /** A piece of work within what runs now. To be found again by `cause`, for a while. */
  within(name: string, cause: string): TraceSpan;
  /** Makes a request to an upstream in a client span, whose context goes on in `traceparent`. */
  upstream(request: UpstreamRequest, send: RequestUpstream): Promise<UpstreamResponse>;
  /** A piece of work in a trace of its own, linked to the one that caused it, if it is known. */
  apart(name: string, cause: string | null): TraceSpan;
}

const tracer = trace.getTracer("farebox");
const attributeCharsMax = 200;
const causesMax = 10_000;

/** Null where Deno does not trace: it does when it starts with `OTEL_DENO=true`. */
export function createTracing(): Tracing | null {
  if (!tracer.startSpan("farebox").isRecording()) return null;
  const causes = new Map<string, Span>();

  function remember(cause: string, span: Span): void {
    causes.set(cause, span);
    if (causes.size <= causesMax) return;
    // A Map keeps the order of insertion: the first is the oldest.
    for (const oldest of causes.keys()) return void causes.delete(oldest);
  }

  return {
    request(method, route) {
      const span = trace.getActiveSpan();
      if (!span) return null;
      span.updateName(`${method} ${route}`);
      span.setAttribute("http.route", route);
      return span.spanContext().traceId;
    },
    within(name, cause) {
      const around = context.active();
      const span = tracer.startSpan(name, {}, around);
      remember(cause, span);
      return new TraceSpan(span, around);
    },
    upstream: traceUpstreamRequest,
    apart(name, cause) {
      const known = cause === null ? undefined : causes.get(cause);
      const links = known ? [{ context: known.spanContext() }] : [];
      const around = trace.deleteSpan(context.active());
      return new TraceSpan(tracer.startSpan(name, { root: true, links }), around);
    },
  };
}

/** Makes a request in a client span, which ends with the head of the response. */
export async function traceUpstreamRequest(
  request: UpstreamRequest,
  send: RequestUpstream,
): Promise<UpstreamResponse> {
  const { url, method } = request;
  const { hostname, port, protocol, origin, pathname } = new URL(url);
  const span = tracer.startSpan(method, {
    kind: SpanKind.CLIENT,
    attributes: {
      "http.request.method": method,
      "url.full": cut(origin + pathname),
      "server.address": hostname,
      "server.port": Number(port) || (protocol === "https:" ? 443 : 80),
    },
  });
  const headers = { ...request.headers };
  propagation.inject(trace.setSpan(context.active(), span), headers);
  headers.traceparent ??= traceparentOf(span.spanContext());
  try {
    const response = await send({ ...request, headers });
    span.setAttribute("http.response.status_code", response.status);
    if (response.status >= 400) span.setStatus({ code: SpanStatusCode.ERROR });
    return response;
  } catch (error) {
    span.setStatus({ code: SpanStatusCode.ERROR, message: cut(String(error)) });
    throw error;
  } finally {
    span.end();
  }
}

/** https://www.w3.org/TR/trace-context/#traceparent-header */
function traceparentOf({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
}

function cut(text: string): string {
  return text.slice(0, attributeCharsMax);
}
