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
import { BoundedMap } from "../base/bounded_map.ts";

/** A span of a trace, and its steps. */
class TraceSpan {
  readonly #span: Span;
  readonly #context: Context;
  #step: { span: Span; context: Context } | null = null;

  constructor(span: Span, around: Context) {
    this.#span = span;
    this.#context = trace.setSpan(around, span);
  }

  /** Starts a step, and ends the one before. */
  step(name: string, attributes: Attributes = {}): void {
    this.#step?.span.end();
    const span = tracer.startSpan(name, { attributes }, this.#context);
    this.#step = { span, context: trace.setSpan(this.#context, span) };
  }

  /** Runs work in the current step: calls that it makes belong to it. */
  run<T>(work: () => T): T {
    return context.with(this.#step?.context ?? this.#context, work);
  }

  set(attributes: Attributes): void {
    for (const [name, value] of Object.entries(attributes)) {
      this.#span.setAttribute(name, typeof value === "string" ? cut(value) : value ?? "");
    }
  }

  /** Ends the span and its last step; with an error, as failed. */
  end(error: string | null = null): void {
    if (error !== null) this.#span.setStatus({ code: SpanStatusCode.ERROR, message: cut(error) });
    this.#step?.span.end();
    this.#span.end();
  }
}

/** A request that can be sent in a span. */
interface TracedRequest {
  method: string;
  url: string | URL;
  headers: Record<string, string>;
}

/** Traces, by Deno's own OpenTelemetry. */
export interface Tracing {
  /** Names the server's span by the route, and returns its trace's id. */
  request(method: string, route: string): string | null;
  /** Starts a span within the current one. It can be found by `cause` for a while. */
  within(name: string, cause: string): TraceSpan;
  /**
   * Sends a request in a client span, whose context is passed on in `traceparent`. The span ends
   * with the head of the response.
   */
  send<R extends TracedRequest, T extends { status: number }>(
    request: R,
    send: (request: R) => Promise<T>,
  ): Promise<T>;
  /** Starts a span in a trace of its own, linked to the span of `cause`, if that is known. */
  apart(name: string, cause: string | null): TraceSpan;
}

const tracer = trace.getTracer("farebox");
const attributeCharsMax = 200;
const causesMax = 10_000;

/** Null where Deno does not trace: it does when started with `OTEL_DENO=true`. */
export function createTracing(): Tracing | null {
  if (!tracer.startSpan("farebox").isRecording()) return null;
  const causes = new BoundedMap<string, Span>(causesMax);

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
      causes.set(cause, span);
      return new TraceSpan(span, around);
    },
    send: traceRequest,
    apart(name, cause) {
      const known = cause === null ? undefined : causes.get(cause);
      const links = known ? [{ context: known.spanContext() }] : [];
      const around = trace.deleteSpan(context.active());
      return new TraceSpan(tracer.startSpan(name, { root: true, links }), around);
    },
  };
}

/** Sends a request in a client span, which ends with the head of the response. */
export async function traceRequest<R extends TracedRequest, T extends { status: number }>(
  request: R,
  send: (request: R) => Promise<T>,
): Promise<T> {
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
