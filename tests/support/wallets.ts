import assert from "node:assert/strict";
import Stripe from "stripe";
import type { Session } from "./stripe.ts";
import { type Body, createWorld, type World } from "./world.ts";

const webhookSecret = "whsec_of_the_server";
/** A server with a Stripe account of its own. */
export const env = {
  STRIPE_SECRET_KEY: "sk_test_of_the_owner",
  STRIPE_WEBHOOK_SECRET: webhookSecret,
};

/** A world whose project charges wallets. */
export const sharedWorld = (project: Record<string, unknown> = {}): Promise<World> =>
  createWorld({ env, project: { name: "Helper", mode: "shared", ...project } });

/** A browser that only keeps cookies. */
export class Device {
  cookie: string | null = null;
  /** The cookie of the page that asks a new person. */
  newcomer: string | null = null;
  readonly world: World;

  constructor(world: World) {
    this.world = world;
  }

  async get(path: string) {
    const response = await this.world.call(path, { key: null, headers: this.#headers() });
    const set = response.headers.get("set-cookie")?.split(";")[0] ?? "";
    if (set.includes("_newcomer=")) this.newcomer = set;
    return { status: response.status, html: await response.text(), headers: response.headers };
  }

  async post(path: string, form: Record<string, string>, headers: Record<string, string> = {}) {
    // No one decides without having seen the page.
    if (form.decision && this.cookie === null && this.newcomer === null) await this.get(path);
    const raw = new URLSearchParams(form).toString();
    const response = await this.world.call(path, {
      key: null,
      raw,
      headers: {
        ...this.#headers(),
        "content-type": "application/x-www-form-urlencoded",
        "content-length": String(raw.length),
        ...headers,
      },
    });
    const [set = null, ...more] = response.headers.getSetCookie();
    if (set) this.cookie = set.split(";")[0] ?? null;
    if (more.length > 0) this.newcomer = null;
    const location = response.headers.get("location");
    return { status: response.status, set, location, html: await response.text() };
  }

  #headers(): Record<string, string> {
    const cookies = [this.cookie, this.newcomer].filter((cookie) => cookie !== null);
    return cookies.length === 0 ? {} : { cookie: cookies.join("; ") };
  }
}

/** The path of a link. */
export const pathOf = (url: string) => new URL(url).pathname;

/** The path of a new authorization link. */
export async function linkFor(world: World, user = "ada", key = world.apiKey): Promise<string> {
  const { body } = await world.json(`/v1/user/connect?user=${user}`, { key });
  assert.equal(body.connected, false);
  return pathOf(body.url);
}

/** Authorizes the user, on this device. */
export async function allow(
  device: Device,
  { user = "ada", cap = "10", key = device.world.apiKey } = {},
) {
  const answer = await device.post(await linkFor(device.world, user, key), {
    decision: "approve",
    cap,
    // Where another wallet has paid: the person was told, and goes on with their own.
    wallet: "new",
  });
  assert.equal(answer.status, 303);
}

let payments = 0;

/** Chooses an amount on the user's page, and returns the session that it opens at Stripe. */
export async function openSession(
  world: World,
  { user = "ada", amount = "10", key = world.apiKey } = {},
): Promise<Session> {
  const { body } = await world.json(`/v1/user/balance/topup?user=${user}`, { key });
  const device = new Device(world);
  const { html } = await device.get(pathOf(body.url));
  const formId = /name="formId" value="([^"]+)"/.exec(html)?.[1] ?? "";
  assert.equal((await device.post(pathOf(body.url), { amount, formId })).status, 303);
  return [...world.stripe.sessions.values()].at(-1) ?? assert.fail();
}

/** Pays into the wallet of this user, as Stripe reports it. */
export async function pay(
  world: World,
  { user = "ada", amount = "10", key = world.apiKey, secret = webhookSecret } = {},
) {
  const session = await openSession(world, { user, amount, key });
  const event: Body = {
    id: `evt_${++payments}`,
    object: "event",
    type: "checkout.session.completed",
    data: { object: { ...session, payment_status: "paid" } },
  };
  const answer = await tellServer(world, event, secret);
  return { answer, session, event };
}

/** Sends an event as Stripe does, signed by its own library. */
export async function tellServer(
  world: World,
  event: Body,
  secret = webhookSecret,
  path = "/v1/stripe",
) {
  const payload = JSON.stringify(event);
  const header = await new Stripe("sk_test").webhooks.generateTestHeaderStringAsync({
    payload,
    secret,
    timestamp: Math.floor(world.clock.now() / 1000),
    cryptoProvider: Stripe.createSubtleCryptoProvider(),
  });
  return await world.json(path, {
    key: null,
    raw: payload,
    headers: { "stripe-signature": header, "content-length": String(payload.length) },
  });
}

/** Charges a user. */
export async function charge(
  world: World,
  amount: string,
  { user = "ada", key = world.apiKey } = {},
) {
  return (await world.json("/v1/user/charge", { key, body: { user, amount } })).body;
}
