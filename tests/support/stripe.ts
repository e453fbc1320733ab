/** Stripe's checkout sessions, as far as the service uses them, with idempotency. */
export interface StripeDouble {
  /** Sessions by id, as Stripe shows them. */
  sessions: Map<string, Session>;
  /** Refuses every call with this status, when set. */
  failsWith: number | null;
  /** Refuses every call as invalid, with this message, when set. */
  refusesWith: string | null;
  /** How many calls find their idempotency key in use by another one. */
  inUse: number;
  /** The idempotency keys of all calls. */
  keys: string[];
  answer(request: Request): Promise<Response>;
  /** Events that Stripe lists, newest first. */
  events: Session[];
  /** How many objects a page of a list has. */
  pageSize: number;
  /** The account's webhooks, and how many were ever made. */
  endpoints: Session[];
  endpointsMade: number;
  /** The parameters of all requests for lists. */
  lists: URLSearchParams[];
  list(url: URL): Response;
}

// deno-lint-ignore no-explicit-any -- as Stripe's own types would make it, loosely
export type Session = Record<string, any>;

export function createStripeDouble(): StripeDouble {
  const sessions = new Map<string, Session>();
  const byKey = new Map<string, { body: string; session: Session }>();
  const double: StripeDouble = {
    sessions,
    failsWith: null,
    refusesWith: null,
    inUse: 0,
    events: [],
    pageSize: 100,
    lists: [],
    endpoints: [],
    endpointsMade: 0,
    list({ pathname, searchParams }) {
      double.lists.push(searchParams);
      const all = pathname === "/v1/events" ? double.events : [...sessions.values()].toReversed();
      const last = searchParams.get("starting_after");
      const from = last === null ? 0 : all.findIndex(({ id }) => id === last) + 1;
      const data = all.slice(from, from + double.pageSize);
      return Response.json({
        object: "list",
        data,
        has_more: from + data.length < all.length,
        url: pathname,
      });
    },
    keys: [],
    async answer(request) {
      if (double.failsWith !== null) {
        const error = { type: "api_error", message: "down" };
        return Response.json({ error }, { status: double.failsWith });
      }
      if (double.refusesWith !== null) {
        const error = { type: "invalid_request_error", message: double.refusesWith };
        return Response.json({ error }, { status: 400 });
      }
      const { pathname } = new URL(request.url);
      if (pathname.startsWith("/v1/webhook_endpoints") && isOwner(request)) {
        return await answerEndpoints(double, request);
      }
      const authorized = request.headers.get("authorization") === "Bearer sk_test_of_the_owner";
      if (authorized && request.method === "GET") return double.list(new URL(request.url));
      if (!authorized || request.method !== "POST" || pathname !== "/v1/checkout/sessions") {
        const error = { type: "invalid_request_error", message: `${request.method} ${pathname}` };
        return Response.json({ error }, { status: authorized ? 404 : 401 });
      }
      const body = await request.text();
      const key = request.headers.get("idempotency-key") ?? crypto.randomUUID();
      double.keys.push(key);
      if (double.inUse > 0) {
        double.inUse--;
        const error = { type: "idempotency_error", code: "idempotency_key_in_use", message: "" };
        return Response.json({ error }, { status: 409 });
      }
      const before = byKey.get(key);
      if (before) {
        if (before.body === body) return Response.json(before.session);
        const error = { type: "idempotency_error", message: "other parameters" };
        return Response.json({ error }, { status: 400 });
      }
      const session = makeSession(new URLSearchParams(body), sessions.size + 1);
      byKey.set(key, { body, session });
      sessions.set(session.id, session);
      return Response.json(session);
    },
  };
  return double;
}

const isOwner = (request: Request) =>
  request.headers.get("authorization") === "Bearer sk_test_of_the_owner";

/** The account's webhooks: listed, created with a secret, and deleted. */
async function answerEndpoints(double: StripeDouble, request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  const url = "/v1/webhook_endpoints";
  if (request.method === "GET") {
    const data = double.endpoints.map(({ secret: _, ...rest }) => rest);
    return Response.json({ object: "list", data, has_more: false, url });
  }
  if (request.method === "DELETE") {
    const id = pathname.slice(url.length + 1);
    double.endpoints = double.endpoints.filter((endpoint) => endpoint.id !== id);
    return Response.json({ id, object: "webhook_endpoint", deleted: true });
  }
  const form = new URLSearchParams(await request.text());
  const n = ++double.endpointsMade;
  const events = [...form].filter(([name]) => name.startsWith("enabled_events"))
    .map(([, type]) => type);
  const endpoint = { id: `we_${n}`, url: form.get("url"), events, secret: `whsec_made_${n}` };
  double.endpoints.push(endpoint);
  return Response.json({ object: "webhook_endpoint", ...endpoint });
}

function makeSession(form: URLSearchParams, n: number): Session {
  const under = (prefix: string) =>
    Object.fromEntries(
      [...form].flatMap(([name, value]) => {
        const key = name.startsWith(`${prefix}[`) ? name.slice(prefix.length + 1, -1) : undefined;
        return key === undefined ? [] : [[key, value]];
      }),
    );
  return {
    id: `cs_test_${n}`,
    object: "checkout.session",
    url: `https://checkout.stripe.com/c/pay/cs_test_${n}`,
    mode: form.get("mode"),
    amount_total: Number(form.get("line_items[0][price_data][unit_amount]")),
    currency: form.get("line_items[0][price_data][currency]"),
    success_url: form.get("success_url"),
    payment_intent: `pi_test_${n}`,
    payment_status: "unpaid",
    metadata: under("metadata"),
    // Of the payment, which is an object of its own.
    payment: {
      metadata: under("payment_intent_data[metadata]"),
      description: form.get("payment_intent_data[description]"),
    },
  };
}
