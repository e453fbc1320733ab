import { createHash } from "node:crypto";
import { fromBytes, toBytes } from "../base/json.ts";
import { cookieValue } from "../base/request.ts";
import type { Deps } from "../deps.ts";
import { connectionsPrefix, deviceEpochKey } from "../store/keys.ts";
import { emptyWrite } from "../store/kv.ts";
import type { Secrets } from "../store/secrets.ts";
import { createSignedTokens } from "../store/signed_tokens.ts";

/** Recognizes a person who returns on the same device. */
export interface DeviceCookies {
  /** Returns the person whose device sent the request, or null. */
  personOf(request: Request): Promise<string | null>;
  /** The same, with the device's grant. */
  known(request: Request): Promise<KnownDevice | null>;
  /**
   * Returns the identity that a device without a wallet gets when it decides; null where it sent no
   * cookie.
   */
  newDevice(request: Request): Promise<KnownDevice | null>;
  /**
   * Returns the cookie of a new device. The device is known by it from its first decision on,
   * whatever response is lost.
   */
  newDeviceCookie(): Promise<string>;
  /**
   * Prepares a grant for another device of this person, before it is decided whether it gets one.
   */
  grantFor(personId: string): Promise<DeviceGrant>;
  /**
   * Invalidates all cookies of the person whose device sent this, except its own. Null when it is
   * no one's.
   */
  signOutOthers(request: Request): Promise<{ cookie: string } | null>;
  /** The cookies that make a device forget its wallet. */
  readonly clearingCookies: readonly string[];
}

/** The person that a device belongs to. */
interface KnownDevice {
  personId: string;
  grant: DeviceGrant;
}

/**
 * That a device belongs to a person, as of when the grant was prepared: signing out the others
 * after that invalidates it too.
 */
export interface DeviceGrant {
  /** Returns the cookie by which the device is known from now on. */
  cookie(): Promise<string>;
}

/** Which of a person's cookies are valid. Nothing is stored until cookies are first invalidated. */
interface Epoch {
  /** The epoch of the valid cookies. */
  number: number;
  /**
   * The hash of one older cookie that stays valid: that of the device which signed out the others,
   * since the response with its new cookie may be lost.
   */
  kept: string | null;
}

/** A cookie that was received. */
interface ReceivedCookie {
  personId: string;
  epoch: number;
  hash: string;
}

/** The longest that browsers keep a cookie (RFC 6265bis: 400 days). */
const lifetimeMs = 400 * 24 * 60 * 60 * 1000;

/**
 * Creates signed, http-only cookies. `Lax`, because a link in a chat comes from another site.
 * Decisions are posted by forms, which are refused from other sites.
 */
export async function createDeviceCookies(
  { kv, committer, clock, id, config: { baseUrl } }: Pick<
    Deps,
    "kv" | "committer" | "clock" | "id" | "config"
  >,
  secrets: Secrets,
): Promise<DeviceCookies> {
  const tokens = await createSignedTokens(secrets, "device cookies");
  const newcomers = await createSignedTokens(secrets, "newcomers' cookies");
  const secure = baseUrl.startsWith("https:");
  // The prefix keeps other hosts of the same site from setting the cookie; it requires https.
  const prefix = secure ? "__Host-farebox" : "farebox";
  const name = `${prefix}_wallet`;
  // A separate cookie: a page that arrives late must not replace a wallet's cookie.
  const newcomersName = `${prefix}_newcomer`;
  const cookie = (value: string, maxAge: number, of = name) =>
    `${of}=${value}; Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Lax${secure ? "; Secure" : ""}`;

  async function read(
    request: Request,
    [of, by] = [name, tokens] as const,
  ): Promise<ReceivedCookie | null> {
    const text = cookieValue(request, of);
    const value = text ? await by.read(text) : null;
    if (!text || !Array.isArray(value)) return null;
    const [personId, issuedAt, epoch = 0] = value;
    if (issuedAt + lifetimeMs <= clock.now()) return null;
    return { personId, epoch, hash: hashOf(text) };
  }

  async function epochOf(personId: string): Promise<Epoch & { version: string | null }> {
    const { value, version } = await kv.get(deviceEpochKey(personId));
    return { ...(value ? fromBytes<Epoch>(value) : { number: 0, kept: null }), version };
  }

  async function make(personId: string, epoch: number): Promise<string> {
    // Each cookie is unique, so one that stays valid cannot be another device's.
    const token = await tokens.make([personId, clock.now(), epoch, id("dev")]);
    return cookie(token, lifetimeMs / 1000);
  }

  const leaveFrom = (personId: string, { number }: Epoch): DeviceGrant => ({
    cookie: () => make(personId, number),
  });

  async function countedOf(sent: ReceivedCookie | null): Promise<KnownDevice | null> {
    const epoch = sent && await epochOf(sent.personId);
    if (!sent || !epoch || !counts(sent, epoch)) return null;
    return { personId: sent.personId, grant: leaveFrom(sent.personId, epoch) };
  }

  const newcomer = async (request: Request) =>
    await countedOf(await read(request, [newcomersName, newcomers]));

  async function known(request: Request): Promise<KnownDevice | null> {
    const own = await countedOf(await read(request));
    if (own) return own;
    const other = await newcomer(request);
    return other && await hasDecided(other.personId) ? other : null;
  }

  /** The response to the decision, with the device's own cookie, may have been lost. */
  async function hasDecided(personId: string): Promise<boolean> {
    return (await kv.list({ prefix: connectionsPrefix(personId), limit: 1 })).length > 0;
  }

  const counts = ({ epoch, hash }: ReceivedCookie, { number, kept }: Epoch) =>
    epoch === number || hash === kept;

  return {
    known,
    newDevice: newcomer,
    async newDeviceCookie() {
      const token = await newcomers.make([id("per"), clock.now(), 0, id("dev")]);
      return cookie(token, lifetimeMs / 1000, newcomersName);
    },
    personOf: async (request) => (await known(request))?.personId ?? null,
    grantFor: async (personId) => leaveFrom(personId, await epochOf(personId)),
    async signOutOthers(request) {
      const sent = await read(request);
      if (!sent) return null;
      const { personId, hash } = sent;
      const key = deviceEpochKey(personId);
      for (;;) {
        const { version, ...now } = await epochOf(personId);
        if (!counts(sent, now)) return null;
        // This cookie has already signed out the others: a repeated request does so once.
        if (sent.epoch !== now.number) return { cookie: await make(personId, now.number) };
        const next: Epoch = { number: now.number + 1, kept: hash };
        const checks = [{ key, version }];
        const sets = [{ key, value: toBytes(next) }];
        const committed = await committer.commit({ ...emptyWrite(), checks, sets });
        if (committed !== null) return { cookie: await make(personId, next.number) };
      }
    },
    clearingCookies: [cookie("", 0), cookie("", 0, newcomersName)],
  };
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}
