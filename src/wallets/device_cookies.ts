import { createHash } from "node:crypto";
import { fromBytes, toBytes } from "../base/json.ts";
import { cookieValue } from "../base/request.ts";
import type { Deps } from "../deps.ts";
import { connectionsPrefix, deviceEpochKey } from "../store/keys.ts";
import { emptyWrite } from "../store/kv.ts";
import type { Secrets } from "../store/secrets.ts";
import { createSignedTokens } from "../store/signed_tokens.ts";

/** Recognises a person who comes back on the same device. */
export interface DeviceCookies {
  /** The person whose device sent this, or null. */
  personOf(request: Request): Promise<string | null>;
  /** The same, with the leave that the device has. */
  known(request: Request): Promise<KnownDevice | null>;
  /**
   * Who a device is once it decides, of whom nothing is stored before; null where it sent no
   * cookie.
   */
  newDevice(request: Request): Promise<KnownDevice | null>;
  /** The cookie of a new one. It is known by it from its first decision on, whatever is lost. */
  newDeviceCookie(): Promise<string>;
  /** Leave for one more device of this person: to be had before it is decided that it gets any. */
  grantFor(personId: string): Promise<DeviceGrant>;
  /** Ends all cookies of the person whose device sent this, but its own. Null when nobody's did. */
  signOutOthers(request: Request): Promise<{ cookie: string } | null>;
  /** The cookies that end that. */
  readonly clearingCookies: readonly string[];
}

/** A person whose device it is. */
interface KnownDevice {
  personId: string;
  grant: DeviceGrant;
}

/**
 * That a device is its person's: as of when it was asked for, and ended by what ends those of then.
 */
export interface DeviceGrant {
  /** The cookie by which a device has it from now on. */
  cookie(): Promise<string>;
}

/** Which of a person's cookies count. None is stored until the first were ended. */
interface Epoch {
  /** That of those which count. */
  number: number;
  /**
   * The one of before that counts on, as its hash: of the device that ended the others, since the
   * answer with its new one may be lost.
   */
  kept: string | null;
}

/** A cookie that was read. */
interface ReceivedCookie {
  personId: string;
  epoch: number;
  hash: string;
}

/** As long as browsers keep a cookie at all (RFC 6265bis: 400 days). */
const lifetimeMs = 400 * 24 * 60 * 60 * 1000;

/**
 * A signed, http-only cookie. `Lax`, because a link in a chat comes from another site; what it asks
 * for is posted by forms, which are refused from there.
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
  // The prefix keeps other hosts of the same site from setting it; it asks for https.
  const prefix = secure ? "__Host-farebox" : "farebox";
  const name = `${prefix}_wallet`;
  // One of its own: a page that is slow to come must not take a wallet's place.
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
    // No two are alike: one that is kept is no other device's.
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

  /** The answer to that, with the device's own cookie, may have been lost. */
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
        // One that was kept has ended the others before: what is sent twice ends them once.
        if (sent.epoch !== now.number) return { cookie: await make(personId, now.number) };
        const next: Epoch = { number: now.number + 1, kept: hash };
        const checks = [{ key, version }];
        const sets = [{ key, value: toBytes(next) }];
        const landed = await committer.commit({ ...emptyWrite(), checks, sets });
        if (landed !== null) return { cookie: await make(personId, next.number) };
      }
    },
    clearingCookies: [cookie("", 0), cookie("", 0, newcomersName)],
  };
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}
