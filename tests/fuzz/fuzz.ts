import { Buffer } from "node:buffer";
import Stripe from "stripe";
import { mulberry32 } from "../support/random.ts";
import { operate } from "../support/webhooks.ts";
import { env, pathOf } from "../support/wallets.ts";
import { adminKey, createWorld, type World } from "../support/world.ts";
import { Mutator } from "./mutate.ts";
import { type Place, type Seed, seedsOf } from "./seeds.ts";
import { answerAll } from "./upstream.ts";

/** What the service did that it must never do, and the request that made it. */
interface Finding {
  /** The number of the body, which replays it with the seed. */
  at: number;
  what: string;
  request: string;
}

interface FuzzOptions {
  seed: number;
  /** The first body, and how many. */
  from?: number;
  bodies: number;
  tell?(finding: Finding): void;
  /** Called now and then with how many bodies have been sent. */
  progress?(sent: number): void;
}

/** Bodies that one world gets: a new one begins with settings that are whole. */
const bodiesPerWorld = 2_000;
/** How often an upstream's answer is spoiled too. */
const spoiledAnswers = 0.1;
const findingsMax = 200;

const price = {
  ...{ input: "1", output: "2", maxOutputTokens: 1000, images: { "*": "0.01" }, characters: "1" },
  ...{ audioMinutes: "0.006", audioOutput: "5", imageOutput: "5" },
};
const toolCalls = {
  ...{ web_search: "0.01", file_search: "0.01", code_interpreter: "0.01", mcp: "0.01" },
  ...{ image_generation: "0.01", shell: "0.01", code_execution: "0.01", source: "0.01" },
};
const responseCache = { enabled: true, maxTemperature: 1 };

/** Projects that call models: strict and with a cache, lenient, and by each of the bridges. */
const callers: readonly Record<string, unknown>[] = [
  { pricing: { models: { "*": price } }, responseCache },
  {
    pricing: { models: { "*": { ...price, images: { low: "0.01" }, toolCalls } } },
    unknownFields: "pass",
    allowedFields: ["tools", "file_id", "context_management", "prompt", "container"],
  },
  bridged("chat"),
  bridged("messages"),
];

function bridged(format: string): Record<string, unknown> {
  const upstream = {
    url: `https://${format}.test/v1`,
    apiKey: "key-of-upstream",
    formats: [format],
  };
  return { pricing: { models: { "*": { ...price, toolCalls } } }, upstream };
}

/**
 * Sends spoiled requests to a service, and returns what must never happen: a 500, a thrown error in
 * the log, an undocumented response, a request that never ends, money that stays held.
 */
export async function fuzz({ seed, from = 0, bodies, tell, progress }: FuzzOptions) {
  const findings: Finding[] = [];
  const seen = new Set<string>();
  const add = (finding: Finding) => {
    // One of a kind is enough.
    const kind = finding.what.replace(/[\d"'][^\s]*/g, "");
    if (seen.has(kind) || findings.length >= findingsMax) return;
    seen.add(kind);
    findings.push(finding);
    tell?.(finding);
  };
  let sent = 0;
  while (sent < bodies) {
    const count = Math.min(bodiesPerWorld, bodies - sent);
    const first = from + sent;
    await fuzzWorld({ seed, first, count, add });
    sent += count;
    progress?.(sent);
  }
  return findings;
}

interface Run {
  seed: number;
  first: number;
  count: number;
  add(finding: Finding): void;
}

async function fuzzWorld({ seed, first, count, add }: Run): Promise<void> {
  const place = await openPlace();
  const { world } = place;
  try {
    let mutator = new Mutator(mulberry32(seed));
    const answers = answerAll(world, () => mutator, spoiledAnswers);
    const seeds = await seedsOf(place);
    for (let at = first; at < first + count; at++) {
      mutator = new Mutator(mulberry32(seed * 1_000_003 + at));
      const request = await spoil(world, mutator, mutator.pick(mutator.pick(seeds)));
      if (request === null) continue;
      world.logged.length = 0;
      world.upstream.calls.length = 0;
      answers.areSpoiled = false;
      for (const what of await faultsOf(world, request)) {
        // What an upstream makes up is in no document of ours.
        const isUpstreams = answers.areSpoiled && /AssertionError|checkedAnswer/.test(what);
        if (!isUpstreams) add({ at, what, request: request.shown });
      }
    }
    for (const what of await moneyHeld(place)) add({ at: first + count, what, request: "" });
  } finally {
    try {
      world[Symbol.dispose]();
    } catch (error) {
      // Of streams, the world says only at its end what no document has.
      const isUpstreams = /200, an event/.test(String(error));
      const what = `world: ${String(error).slice(0, 2_000)}`;
      if (!isUpstreams) add({ at: first, what, request: "" });
    }
  }
}

async function openPlace(): Promise<Place> {
  const world = await createWorld({
    env: { ...env, REQUESTS_MAX: "100000" },
    sendMail: () => Promise.resolve(),
    project: callers[0] ?? {},
  });
  const keys = [world.apiKey];
  for (const settings of callers.slice(1)) keys.push((await world.makeProject(settings)).apiKey);
  for (const key of keys) await deposit(world, key);
  const changed = await changedProject(world);
  const subscription = { url: "https://hooks.test/a", events: ["*"] };
  const subscribed = await world.json("/v1/webhooks/subscriptions", {
    key: changed.apiKey,
    body: subscription,
  });
  await deposit(world, changed.apiKey);
  await world.call("/v1/user/charge", { body: { user: "ada", amount: "1" } });
  const [activity] = await world.activities("ada");
  const made = await operate(world, "/keys", { body: { scopes: ["chat"] } });
  const topUp = await world.json("/v1/user/balance/topup?user=ada");
  const shared = await world.makeProject({ mode: "shared", name: "Shared" });
  const connect = await world.json("/v1/user/connect?user=ada", { key: shared.apiKey });
  const ids = {
    ...{ projectId: world.projectId, user: "ada", model: "test-model", responseId: "resp_1" },
    subscriptionId: subscribed.body.subscription?.id ?? "x",
    ...{ activityId: activity?.id ?? "", keyId: made.body.key?.id ?? "x" },
    ...{ deliveryId: "dly_1", jobId: "job_1", page: "users", name: "users" },
  };
  const pages = [pathOf(topUp.body.url), pathOf(connect.body.url)];
  return { world, callers: keys, changed, ids, stripeSecret: env.STRIPE_WEBHOOK_SECRET, pages };
}

function changedProject(world: World) {
  return world.makeProject({
    alerts: { emails: ["owner@my.app"] },
    stripe: { secretKey: "sk_test_of_the_owner", webhookSecret: env.STRIPE_WEBHOOK_SECRET },
  });
}

async function deposit(world: World, key: string): Promise<void> {
  for (const user of ["ada", "u"]) {
    await world.call("/v1/user/balance/deposit", { key, body: { user, amount: "1000000" } });
  }
}

interface Sent {
  path: string;
  init: RequestInit;
  shown: string;
}

const headerNames = [
  ...["idempotency-key", "x-service-user", "x-request-id", "content-type", "accept", "cookie"],
  ...["accept-language", "authorization", "content-encoding", "openai-beta", "anthropic-version"],
  ...["anthropic-beta", "x-forwarded-for", "if-none-match", "origin", "sec-fetch-site", "range"],
  ...["x-service-cache", "cache-control", "traceparent", "stripe-signature", "x-api-key"],
  ...["content-length", "accept-encoding", "x-openwebui-user-id"],
];

/** A seed as a spoiled request; null where no client could send it. */
async function spoil(world: World, mutator: Mutator, seed: Seed): Promise<Sent | null> {
  const { method, key, json, fields, parts, signedBy } = seed;
  const headers: Record<string, string> = { ...seed.headers };
  if (key !== null) headers.authorization = `Bearer ${key}`;
  let path = seed.path;
  let body: string | Uint8Array<ArrayBuffer> | null = null;
  const isBodiless = json === undefined && !fields && !parts;
  if (json !== undefined) {
    body = mutator.json(json);
    headers["content-type"] = "application/json";
  } else if (fields) {
    const pairs = mutator.fields(fields).map(([name, text]) => [name, text.toWellFormed()]);
    body = new URLSearchParams(pairs).toString();
    headers["content-type"] = "application/x-www-form-urlencoded";
  } else if (parts) {
    body = multipart(mutator.fields(parts));
    headers["content-type"] = "multipart/form-data; boundary=b";
  }
  if (typeof body === "string") headers["content-length"] = String(Buffer.byteLength(body));
  if (signedBy && typeof body === "string") {
    headers["stripe-signature"] = await signed(world, body, signedBy);
  }
  if (isBodiless || mutator.chance(0.05)) path = spoiledPath(mutator, path);
  if (mutator.chance(isBodiless ? 0.5 : 0.08)) {
    const text = mutator.chance(0.5) ? mutator.text() : String.fromCharCode(0xff, 0x80, 0xe9);
    headers[mutator.pick(headerNames)] = Buffer.from(text.toWellFormed()).toString("latin1");
  }
  const init: RequestInit = { method, headers, ...(body === null ? {} : { body }) };
  const shown = `${method} ${path} ${JSON.stringify(headers)} ${
    typeof body === "string" ? body : body && Buffer.from(body).toString("latin1")
  }`;
  try {
    new Request(`http://localhost${path}`, init);
    return { path, init, shown };
  } catch {
    return null;
  }
}

function spoiledPath(mutator: Mutator, path: string): string {
  const [before = "", query] = path.split("?");
  const parameters = [...new URLSearchParams(query)] as [string, string][];
  const text = () =>
    mutator.chance(0.2) ? mutator.text() : encodeURIComponent(mutator.text().toWellFormed());
  if (parameters.length > 0 && mutator.chance(0.7)) {
    const spoiled = mutator.fields(parameters).map(([name, value]) => [name, value.toWellFormed()]);
    return `${before}?${new URLSearchParams(spoiled)}`;
  }
  if (mutator.chance(0.3)) {
    return `${before}?${mutator.pick(["user", "limit", "cursor"])}=${text()}`;
  }
  const segments = before.split("/");
  const at = 1 + Math.floor(segments.length * 0.999 * (mutator.chance(0.5) ? 0.9 : 0.6));
  segments[Math.min(at, segments.length - 1)] = text();
  return segments.join("/") + (query ? `?${query}` : "");
}

function multipart(fields: readonly [string, string][]): Uint8Array<ArrayBuffer> {
  const texts = fields.map(([name, text]) =>
    `--b\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${text}\r\n`
  );
  const file = `--b\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n` +
    "content-type: audio/wav\r\n\r\nRIFF\r\n--b--\r\n";
  return Uint8Array.from(Buffer.from(texts.join("") + file));
}

let stripeClient: Stripe | null = null;

async function signed(world: World, payload: string, secret: string): Promise<string> {
  stripeClient ??= new Stripe("sk_test");
  return await stripeClient.webhooks.generateTestHeaderStringAsync({
    payload,
    secret,
    timestamp: Math.floor(world.clock.now() / 1000),
    cryptoProvider: Stripe.createSubtleCryptoProvider(),
  });
}

/** Statuses that say that something else is at fault, and the answers of Stripe's double. */
const expectedStatuses = new Set([502, 503, 504]);

async function faultsOf(world: World, { path, init }: Sent): Promise<string[]> {
  const faults: string[] = [];
  const answering = (async () => {
    const response = await world.app.fetch(new Request(`http://localhost${path}`, init));
    await response.bytes().catch(() => {});
    return response.status;
  })();
  const status = await ended(world, answering.catch((error) => `threw ${causeOf(error)}`));
  if (typeof status === "string") faults.push(status);
  else if (status >= 500 && !expectedStatuses.has(status)) faults.push(`status ${status}`);
  for (const { level, event, ...fields } of world.logged) {
    const isExpected = expectedStatuses.has(Number(fields.status)) ||
      event === "stripe_unreachable";
    if (level === "error" && !isExpected) {
      faults.push(`logged ${event}: ${causeOf(fields.cause ?? JSON.stringify(fields))}`);
    }
  }
  return faults;
}

function causeOf(error: unknown): string {
  const text = error instanceof Error ? error.stack ?? error.message : String(error);
  return text.replace(/x{20,}/g, "xxx").split("\n").slice(0, 8).join("\n").slice(0, 1_500);
}

/** Waits for a request, moving the clock where it waits for time to pass. */
async function ended<T>(world: World, work: Promise<T>): Promise<T | string> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  for (let turn = 0; turn < 150; turn++) {
    const pause = new Promise<"waits">((resolve) => {
      timer = setTimeout(() => resolve("waits"), turn === 0 ? 100 : 10);
    });
    const first = await Promise.race([work, pause]);
    clearTimeout(timer);
    if (first !== "waits") return first;
    await world.clock.advance(turn < 20 ? 500 : 10_000);
  }
  return "the request never ends";
}

/** What is held although no call runs, in every project. */
async function moneyHeld({ world }: Place): Promise<string[]> {
  const faults: string[] = [];
  const { body } = await world.json("/v1/admin/projects?limit=100", { key: adminKey });
  for (const { id } of body.projects) {
    for (let cursor = "";;) {
      const page = `/v1/admin/projects/${id}/users?limit=100${cursor && `&cursor=${cursor}`}`;
      const { body: { users = [], nextCursor } } = await world.json(page, { key: adminKey });
      for (const { user, held } of users) {
        if (Number(held ?? 0) !== 0) faults.push(`${held} stays held for ${user} in ${id}`);
      }
      if (!nextCursor) break;
      cursor = encodeURIComponent(nextCursor);
    }
  }
  return faults;
}
