import type { Json, JsonObject } from "../../src/base/json.ts";
import { apiDocument, resolved } from "../support/api_document.ts";
import { Visitor } from "../support/console.ts";
import { pathOf } from "../support/wallets.ts";
import { adminKey, type Body, type World } from "../support/world.ts";
import { modelBodies } from "./bodies.ts";

/** A valid request, which the fuzz test spoils. */
export interface Seed {
  method: string;
  path: string;
  key: string | null;
  headers?: Record<string, string>;
  json?: Json;
  /** A form of a page. */
  fields?: [string, string][];
  /** A form with a file. */
  parts?: [string, string][];
  /** The secret that an event of Stripe is signed with. */
  signedBy?: string;
}

export interface Place {
  world: World;
  /** Keys of the projects that call models: strict, lenient, and by bridges. */
  callers: readonly string[];
  /** A project that the operator's calls may change. */
  changed: { projectId: string; apiKey: string; ownerKey: string };
  ids: Record<string, string>;
  stripeSecret: string;
  /** Paths of a top-up page and of an authorization page. */
  pages: readonly string[];
}

/**
 * All seeds by kind: the calls of models, which are most of what is sent, the API document's
 * examples, Stripe's events, and the forms of the pages.
 */
export async function seedsOf(place: Place): Promise<Seed[][]> {
  const models = modelSeeds(place);
  const documented = documentSeeds(place);
  return [
    ...[models, models, models, models],
    ...[documented, documented, stripeSeeds(place), await formSeeds(place)],
  ];
}

function modelSeeds({ callers }: Place): Seed[] {
  const calls = modelBodies.flatMap(([path, json]) =>
    callers.map((key): Seed => {
      const headers = path.startsWith("/messages") ? { "x-service-user": "ada" } : {};
      return { method: "POST", path: `/v1${path}`, key, headers, json };
    })
  );
  const parts: [string, string][] = [
    ["model", "test-model"],
    ["user", "ada"],
    ["language", "en"],
    ["response_format", "json"],
    ["timestamp_granularities[]", "word"],
    ["temperature", "0"],
    ["stream", "false"],
  ];
  const forms = ["transcriptions", "translations"].flatMap((name) =>
    callers.map((key): Seed => ({ method: "POST", path: `/v1/audio/${name}`, key, parts }))
  );
  return [...calls, ...forms];
}

/** Operations that would end the world. */
const left = new Set(["archiveProject", "backup", "revokeKey", "exportRecords"]);

function documentSeeds({ callers: [apiKey = ""], changed, ids }: Place): Seed[] {
  return Object.entries<Body>(apiDocument().document.paths).flatMap(([path, methods]) =>
    Object.entries<Body>(methods).flatMap(([method, described]): Seed[] => {
      const { operationId, security, parameters = [], requestBody } = described;
      if (left.has(operationId)) return [];
      const isAdmin = security[0]?.operatorKey !== undefined;
      const known = isAdmin ? { ...ids, projectId: changed.projectId } : ids;
      const filled = path.replace(/\{(\w+)\}/g, (_, name) => known[name] ?? "x");
      const query = new URLSearchParams();
      for (const one of parameters.map(resolved)) {
        if (one.in === "query") query.set(one.name, String(one.schema.example ?? ""));
      }
      const examples = requestBody?.content["application/json"]?.examples ?? {};
      const bodies = Object.values<Body>(examples).map(({ value }) => value as JsonObject);
      const seed = { method: method.toUpperCase(), path: filled, key: isAdmin ? adminKey : apiKey };
      const asked = query.size > 0 ? [{ ...seed, path: `${filled}?${query}` }] : [];
      return bodies.length > 0
        ? bodies.map((json) => ({ ...seed, json }))
        : requestBody
        ? [{ ...seed, json: {} }, ...asked]
        : [seed, ...asked];
    })
  );
}

function stripeSeeds({ world, changed, stripeSecret }: Place): Seed[] {
  const metadata = { paywallId: world.projectId, user: "ada", farebox: "1" };
  const session = {
    id: "cs_1",
    object: "checkout.session",
    payment_status: "paid",
    mode: "payment",
    currency: "usd",
    amount_total: 500,
    payment_intent: "pi_1",
    client_reference_id: "ada",
    metadata,
  };
  const charge = { id: "ch_1", object: "charge", payment_intent: "pi_1", amount_refunded: 100 };
  const types: [string, Json][] = [
    ["checkout.session.completed", session],
    ["checkout.session.async_payment_succeeded", session],
    ["checkout.session.async_payment_failed", session],
    ["charge.refunded", charge],
    ["charge.dispute.created", { id: "dp_1", object: "dispute", charge: "ch_1", amount: 100 }],
    ["refund.updated", { id: "re_1", object: "refund", charge: "ch_1", payment_intent: "pi_1" }],
  ];
  return types.flatMap(([type, object]) =>
    ["/v1/stripe", `/v1/stripe/${changed.projectId}`].map((path): Seed => ({
      method: "POST",
      path,
      key: null,
      json: { id: "evt_1", object: "event", type, created: 1, data: { object } },
      signedBy: stripeSecret,
    }))
  );
}

/** Every form of the console's pages, and of the pages where people pay. */
async function formSeeds({ world, changed, ids, pages }: Place): Promise<Seed[]> {
  const seeds: Seed[] = [
    { method: "POST", path: "/console/sign-in", key: null, fields: [["key", changed.ownerKey]] },
  ];
  for (const path of ["/wallet/passkeys/options", "/wallet/passkeys", "/wallet/sign-in"]) {
    const json = {
      id: "a",
      response: { clientDataJSON: "e30", attestationObject: "oA" },
      type: "x",
    };
    seeds.push({ method: "POST", path, key: null, json });
  }
  for (const key of [adminKey, changed.ownerKey]) {
    const visitor = new Visitor(world);
    await visitor.signIn(key);
    const headers = { cookie: visitor.cookie ?? "", "sec-fetch-site": "same-origin" };
    const base = `/console/projects/${changed.projectId}`;
    const sections = [
      ...["", "/users", "/deposit", "/refund", "/keys", "/payments", "/pricing", "/upstreams/one"],
      ...[
        "/upstreams/route",
        "/upstreams/usual",
        "/limits",
        "/alerts",
        "/messages",
        "/settings",
        "/webhooks",
      ],
      ...["/users/limits", "/users/erase", "/requests", "/activity", "/audit", "/deliveries"],
      `/webhooks/${ids.subscriptionId}`,
    ].map((section) => base + section);
    for (const path of [...sections, "/console/projects/new", "/console/catalogue"]) {
      const { html } = await visitor.get(path);
      seeds.push({ method: "GET", path: `${path}?user=ada&cursor=&from=&q=a`, key: null, headers });
      seeds.push(...formsIn(html, path, headers));
    }
  }
  for (const path of pages) {
    const response = await world.call(path, { key: null });
    const cookie = (response.headers.getSetCookie()[0] ?? "").split(";")[0] ?? "";
    const headers = { "sec-fetch-site": "same-origin", ...(cookie ? { cookie } : {}) };
    seeds.push(...formsIn(await response.text(), path, headers));
  }
  return seeds;
}

function formsIn(html: string, page: string, headers: Record<string, string>): Seed[] {
  const seeds: Seed[] = [];
  for (const [, attributes = "", inner = ""] of html.matchAll(/<form([^>]*)>(.*?)<\/form>/gs)) {
    if (!/method="post"/i.test(attributes)) continue;
    const action = /action="([^"]*)"/.exec(attributes)?.[1] ?? page;
    const path = /^https?:/.test(action) ? pathOf(action) : action;
    if (/sign-out|archive|revoke/.test(path)) continue;
    const fields: [string, string][] = [];
    for (const [, tag = "", name = "", more = "", text = ""] of inner.matchAll(controls)) {
      const option = /<option[^>]*value="([^"]*)"/.exec(text)?.[1];
      fields.push([name, /value="([^"]*)"/.exec(tag + more)?.[1] ?? option ?? text]);
    }
    seeds.push({ method: "POST", path: path.split("?")[0] || page, key: null, headers, fields });
  }
  return seeds;
}

/** A control of a form: what stands before its name, the name, what follows, and its content. */
const controls =
  /<(?:input|select|textarea|button)([^>]*) name="([^"]*)"([^>]*)>([^<]*(?:<option.*?<\/select>)?)/gs;
