import { z } from "zod";
import {
  anyCode,
  type EndpointDoc,
  type EndpointDocs,
  type ErrorDoc,
  responseDocs,
} from "../base/endpoint_doc.ts";
import { idempotencyHeader, replayedHeader, retryAfterHeader } from "../base/fields.ts";
import { keyBudgetReached } from "../projects/key_budget.ts";
import { userErrors, userHeader } from "../projects/end_user.ts";
import { modelSchema, modelsSchema } from "../upstreams/model_schema.ts";
import type { ServedEndpoint } from "./served_endpoint.ts";

const tag = { tag: "Chat", access: "chat" } as const;

const text = (description: string) => z.string().optional().meta({ description });
const routeHeaders = {
  "X-Service-Upstream": text("Where a route leads: the name of the upstream of the last attempt."),
  "X-Service-Attempts": text("Where a route leads: how many attempts were made."),
  "X-Service-Cache": text(
    "Where the project has a response cache that is for such requests: `hit` or `miss`.",
  ),
};
/** Headers with the state of rate limits. */
const rateHeaderFields = z.object(Object.fromEntries(
  ["requests", "tokens"].flatMap((what) => [
    [`x-ratelimit-limit-${what}`, text(`The most ${what} a minute.`)],
    [`x-ratelimit-remaining-${what}`, text(`How many ${what} are left.`)],
    [`x-ratelimit-reset-${what}`, text(`When all ${what} are available again: \`1.5s\`.`)],
  ]),
));
/** Headers of a response that is free. */
export const freeCallHeaders = rateHeaderFields;
/** Headers of a response that was charged, or of the paywall in its place. */
export const callHeaders = z.object({
  "X-Service-Activity-Id": text("The activity that charges the response."),
  "X-Service-Cost": text("Not when streaming: the charge, in currency units."),
  "X-Service-Balance": text("Not when streaming: the balance after the charge."),
  "X-Service-Paywall": text("Why the response is not the model's: as `paywall.reason`."),
  "X-Service-Paywall-Url": text("As `paywall.url`."),
  "Retry-After": text("As `paywall.retryAfter`, where only running calls hold the balance."),
  "X-Service-Unparsed": text(
    "`true`: the response is too large to be parsed, and passed on as its upstream sent it.",
  ),
  "X-Service-Removed-Tools": text(
    "Tools that were removed from the request, because they run at the provider and have no price.",
  ),
  "X-Service-Output-Limit": text(
    "Where the output is bounded below what was asked for, or below what is usual: the tokens, " +
      "and by what: `16384; by=project`. `balance`; `limit`, a limit of spending or the key's " +
      "budget; `project`, the owner's `maxOutputTokens`; `model`, what the model can write.",
  ),
  ...routeHeaders,
  "Idempotency-Stored": text("`false`: the response is too large to be stored under its key."),
  ...replayedHeader.shape,
  ...rateHeaderFields.shape,
});

const headersWithRetry = rateHeaderFields.extend(retryAfterHeader.shape).extend(routeHeaders);
const refusalHeaders = rateHeaderFields.extend(retryAfterHeader.partial().shape)
  .extend(routeHeaders);
const chargedHeaders = refusalHeaders.extend({
  "X-Service-Activity-Id": text("The activity that charges what the upstream has generated."),
  "X-Service-Cost": text("Its charge, in currency units."),
  "X-Service-Balance": text("The balance after the charge."),
  "X-Should-Retry": text("`false`: a repeated request would be generated and charged again."),
  ...replayedHeader.shape,
});
const passed = {
  code: anyCode,
  when: "The upstream refuses the request; its own message and code.",
  headers: refusalHeaders,
} as const;
const callErrors: readonly ErrorDoc[] = [
  ...userErrors,
  {
    status: 400,
    code: "unsupported_parameter",
    when: "A field would cost what the project has no price for.",
  },
  { status: 400, ...passed },
  { status: 403, code: "project_archived", when: "The project is archived." },
  { status: 403, code: "model_not_allowed", when: "The key may not call the model." },
  keyBudgetReached,
  { status: 403, code: "user_being_forgotten", when: "The user is being forgotten." },
  { status: 404, code: "model_not_found", when: "The project has no price for the model." },
  { status: 404, ...passed },
  { status: 404, code: "endpoint_not_served", when: "The upstream has no such endpoint." },
  { status: 413, ...passed },
  { status: 422, code: "idempotency_key_reused", when: "The key was used with another body." },
  {
    status: 422,
    code: "stored_response_unreadable",
    when:
      "The response under the key was charged, and the `SECRETS_KEY` that encrypted it is gone.",
  },
  { status: 422, ...passed },
  {
    status: 429,
    code: "rate_limit_exceeded",
    when: "A rate limit of the user or the key is reached.",
  },
  { status: 429, code: "concurrency_limit", when: "Too many requests are running." },
  { status: 429, ...passed, headers: headersWithRetry },
  {
    status: 499,
    code: null,
    when: "The client disconnected; only the log shows this.",
    headers: refusalHeaders,
  },
  {
    status: 500,
    code: "internal_error",
    when: "An internal error, which has been logged. A response that the upstream has given is " +
      "charged.",
    headers: chargedHeaders,
  },
  {
    status: 502,
    code: "upstream_error",
    when: "The upstream returned an invalid response.",
    headers: refusalHeaders,
  },
  {
    status: 502,
    code: anyCode,
    when: "The upstream's stream began with an error; its own message and code.",
    headers: refusalHeaders,
  },
  {
    status: 529,
    code: "upstream_error",
    when: "The upstream says that it is overloaded: with this status, or by that name.",
    headers: refusalHeaders,
  },
  {
    status: 502,
    code: "response_too_large",
    when:
      "Events for a caller who asked for no stream are too large to be put together. What the " +
      "upstream generated is charged.",
    headers: chargedHeaders,
  },
  {
    status: 502,
    code: "upstream_unavailable",
    when: "The upstream refuses the operator's key or account, or none is configured.",
    headers: refusalHeaders,
  },
  {
    status: 503,
    code: "account_contended",
    when: "Other requests kept changing the account. Retry.",
  },
  {
    status: 503,
    code: "hold_lost",
    when: "The hold on the balance could not be kept.",
    headers: refusalHeaders,
  },
  {
    status: 503,
    code: "hold_not_renewed",
    when: "The same, during the response.",
    headers: refusalHeaders,
  },
  {
    status: 503,
    code: "answer_too_long",
    when: "The response took more than an hour.",
    headers: refusalHeaders,
  },
  {
    status: 503,
    code: "server_shutdown",
    when: "The server is being stopped.",
    headers: refusalHeaders,
  },
  {
    status: 504,
    code: "upstream_timeout",
    when: "The upstream did not respond in time. A response that has begun is charged.",
    headers: chargedHeaders,
  },
];

/** The meaning of an error code of a call; null for one that this server does not give. */
export function callErrorText(code: string): string | null {
  return callErrors.find((error) => error.code === code)?.when ?? null;
}

const mustPay: ErrorDoc = {
  status: 402,
  code: anyCode,
  when: "The user must top up or give permission: the message has the link.",
  headers: callHeaders,
};

/** Of formats whose responses can say it. */
const mustPayOnJson: ErrorDoc = {
  ...mustPay,
  when: "The user must top up or give permission, JSON or a call of a tool is required, and the " +
    "project's `paywallOnJson` is `402`: the message has the link.",
};

const errorsOf: Readonly<Record<ServedEndpoint["format"]["kind"], readonly ErrorDoc[]>> = {
  passed: [...callErrors, mustPay],
  text: [...callErrors, mustPayOnJson],
  free: callErrors,
  count: callErrors,
};

/** The path parameter that names the user. */
export const userPath = z.object({
  user: z.string().meta({ description: "The end user, for tools that can set only a base URL." }),
});

/** The documents of an endpoint that calls models: one for each of its paths. */
export function callApiDoc({ format, doc, clientsAddV1 }: ServedEndpoint): EndpointDocs {
  const { kind, path } = format;
  const isPaid = kind === "text" || kind === "passed";
  const headers = isPaid ? userHeader.extend(idempotencyHeader.shape) : userHeader;
  const call: EndpointDoc = { ...tag, ...doc, headers, errors: errorsOf[kind] };
  const ofUser: EndpointDoc = {
    ...call,
    operationId: call.operationId.replace("create", "createUsers"),
    variantOf: call.operationId,
    summary: `${call.summary}, with the user in the path`,
    path: userPath,
  };
  const belowBase: EndpointDoc = {
    ...ofUser,
    operationId: `${ofUser.operationId}BelowBase`,
    summary: `${ofUser.summary}, below a base URL with the user`,
  };
  return {
    [`/v1${path}`]: { POST: call },
    [`/v1/:user${path}`]: { POST: ofUser },
    ...(clientsAddV1 ? { [`/v1/:user/v1${path}`]: { POST: belowBase } } : {}),
  };
}

const model = {
  id: "gpt-4o-mini",
  object: "model",
  created: 1_769_851_800,
  owned_by: "My app",
  name: "gpt-4o-mini",
  display_name: "gpt-4o-mini",
  pricing: {
    prompt: "0.0000003",
    completion: "0.0000012",
    request: "0",
    per_million: { input: "0.3", output: "1.2" },
    currency: "usd",
  },
};

const listModels: EndpointDoc = {
  ...tag,
  operationId: "listModels",
  summary: "List models",
  answers: {
    200: responseDocs("The models that have a price.", modelsSchema, {
      one: { object: "list", data: [model] },
    }),
  },
};

const modelPath = z.object({
  model: z.string().meta({ description: "The model's name; slashes may be escaped." }),
});

const getModel: EndpointDoc = {
  ...tag,
  operationId: "getModel",
  summary: "Retrieve a model",
  path: modelPath,
  answers: { 200: responseDocs("The model.", modelSchema, { model }) },
  errors: [{ status: 404, code: "model_not_found", when: "The project has no price for it." }],
};

/** The endpoints that list models. */
export const modelsApiDoc: EndpointDocs = {
  "/v1/models": { GET: listModels },
  "/v1/models/*": { GET: getModel },
  "/v1/:user/models": {
    GET: {
      ...listModels,
      operationId: "listUsersModels",
      variantOf: "listModels",
      summary: "List models, with the user in the path",
      path: userPath,
    },
  },
  "/v1/:user/models/*": {
    GET: {
      ...getModel,
      operationId: "getUsersModel",
      variantOf: "getModel",
      summary: "Retrieve a model, with the user in the path",
      path: userPath.extend(modelPath.shape),
    },
  },
};
