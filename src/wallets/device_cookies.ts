import { toBase64Url } from "../base/base64.ts";
import { toBytes } from "../base/json.ts";
import { cookieValue } from "../base/request.ts";
import type { Deps } from "../deps.ts";
import { connectionsPrefix, deviceEpochKey, deviceKey } from "../store/keys.ts";
import { emptyWrite, type Write } from "../store/kv.ts";
import type { Secrets } from "../store/secrets.ts";
import { type Epoch, isSignedIn, readEpoch } from "./device_epochs.ts";
import {
  decodeDevice,
  type Device,
  deviceKeys,
  deviceSets,
  hashOfCookie,
  newDeviceWrite,
  readDevice,
} from "./device_rows.ts";
import { joinedInto, ownerOf } from "./join_rows.ts";
import { createSignedCookies } from "./signed_cookies.ts";

/** Recognizes a person who returns on the same device. */
export interface DeviceCookies {
  /** Returns the person whose device sent the request, or null. */
  personOf(request: Request): Promise<string | null>;
  /** Returns the person whose device sent the request, with the device's grant; or null. */
  known(request: Request): Promise<KnownDevice | null>;
  /**
   * Returns who decides on the device that sent the request: its person, or someone new. Null where
   * it sent no cookie.
   */
  decider(request: Request): Promise<Decider | null>;
  /**
   * Returns the cookie of a new device. The device is known by it from its first decision on,
   * whatever response is lost.
   */
  newDeviceCookie(): string;
  /**
   * Prepares a grant for another device of this person, before it is decided whether it gets one.
   */
  grantFor(personId: string): Promise<DeviceGrant>;
  /** Returns another device of this person: its cookie, and the rows that make it known. */
  deviceFor(personId: string): Promise<{ cookie: string; sets: Write["sets"] }>;
  /**
   * Signs out all other devices of the person whose device sent this. Null when it is no one's.
   */
  signOutOthers(request: Request): Promise<{ cookie: string } | null>;
  /** Removes the device that sent the request; returns the cookies that make it forget that. */
  forget(request: Request): Promise<readonly string[]>;
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
interface DeviceGrant {
  /** Returns the cookie by which the device is known from now on. */
  cookie(): Promise<string>;
}

/** Who decides on a device. */
interface Decider extends DeviceGrant {
  /** Whether the device has no wallet: it gets one with the decision. */
  isNew: boolean;
  /**
   * Returns the person, and what belongs in the write of their decision: it fails where the device
   * has decided at the same time, and then has to be read again.
   */
  read(): Promise<{ personId: string; write: Write }>;
}

/** A device that sent its cookie. */
interface SentDevice {
  secret: string;
  hash: string;
  device: Device;
  epoch: Epoch & { version: string | null };
}

/** The longest that browsers keep a cookie (RFC 6265bis: 400 days). */
const lifetimeMs = 400 * 24 * 60 * 60 * 1000;
/** How often the use of a device is recorded. */
const renewedEveryMs = 24 * 60 * 60 * 1000;
const secretBytes = 32;
const secretPattern = /^[\w-]{43}$/;

type CookieDeps = Pick<Deps, "kv" | "committer" | "clock" | "id" | "config" | "randomBytes">;

/**
 * Creates http-only cookies with a random secret, of which the store has only the hash: no key has
 * to be kept for a person to keep their wallet. `Lax`, because a link in a chat comes from another
 * site. Decisions are posted by forms, which are refused from other sites.
 */
export async function createDeviceCookies(
  deps: CookieDeps,
  secrets: Secrets,
): Promise<DeviceCookies> {
  const { kv, committer, clock, id } = deps;
  const signed = await createSignedCookies(secrets, { clock, lifetimeMs });
  const jar = createJar(deps);

  const epochOf = (personId: string) => readEpoch(kv, personId);

  const newDevice = (personId: string, epoch: number): Device => ({
    personId,
    epoch,
    endsAt: clock.now() + lifetimeMs,
  });

  /** Returns the device of a cookie; null where it is no one's, or was signed out. */
  async function read(
    secret: string | null,
    of: "device" | "newcomer",
  ): Promise<SentDevice | null> {
    if (!secret) return null;
    const hash = hashOfCookie(secret);
    const device = await readDevice(kv, hash) ?? await adopt(secret, of);
    if (!device || device.endsAt <= clock.now()) return null;
    const epoch = await epochOf(device.personId);
    return isSignedIn(hash, device, epoch) ? { secret, hash, device, epoch } : null;
  }

  /**
   * From its first visit on, a device of 0.9.0 is known by its hash: no key matters any more.
   * Version 1.1 may drop it.
   */
  async function adopt(secret: string, of: "device" | "newcomer"): Promise<Device | null> {
    const said = await signed[of](secret);
    // The response to the decision, with the device's own cookie, may have been lost.
    if (!said || of === "newcomer" && !await hasDecided(said.personId)) return null;
    const device = newDevice(said.personId, said.epoch);
    const hash = hashOfCookie(secret);
    const isIn = isSignedIn(hash, said, await epochOf(said.personId));
    if (isIn) await committer.commit(newDeviceWrite(hash, device));
    return device;
  }

  async function hasDecided(personId: string): Promise<boolean> {
    return (await kv.list({ prefix: connectionsPrefix(personId), limit: 1 })).length > 0;
  }

  const sent = async (request: Request) =>
    await read(jar.wallet(request), "device") ?? await read(jar.newcomer(request), "newcomer");

  async function create(personId: string, epoch: number): Promise<string> {
    const secret = jar.newSecret();
    await committer.commit(newDeviceWrite(hashOfCookie(secret), newDevice(personId, epoch)));
    return jar.walletCookie(secret);
  }

  async function renew({ secret, hash, device }: SentDevice): Promise<string> {
    const later = newDevice(device.personId, device.epoch);
    const key = deviceKey(hash);
    if (later.endsAt - device.endsAt >= renewedEveryMs) {
      const { value, version } = await kv.get(key);
      // It may have been removed, or have become another wallet's.
      const isSame = decodeDevice(value)?.personId === device.personId;
      const write = { ...emptyWrite(), checks: [{ key, version }], sets: deviceSets(hash, later) };
      if (isSame) await committer.commit(write);
    }
    return jar.walletCookie(secret);
  }

  async function known(request: Request): Promise<KnownDevice | null> {
    const found = await sent(request);
    if (!found) return null;
    const personId = await ownerOf(kv, found.device.personId);
    const { number } = found.epoch;
    const isCurrent = found.device.epoch === number;
    const cookie = () => isCurrent ? renew(found) : create(found.device.personId, number);
    return { personId, grant: { cookie } };
  }

  /**
   * Returns the write that begins a new epoch of a wallet and of what became part of it. It fails
   * where the device that asks for it has been signed out since.
   */
  async function newEpoch(
    person: string,
    { hash, device, epoch }: SentDevice,
  ): Promise<{ number: number; write: Write }> {
    const write = emptyWrite();
    let number = 0;
    for (const each of [person, ...await joinedInto(kv, person)]) {
      const key = deviceEpochKey(each);
      const { version, ...now } = each === device.personId ? epoch : await epochOf(each);
      const next: Epoch = { number: now.number + 1, kept: hash };
      if (each === person) number = next.number;
      write.checks.push({ key, version });
      write.sets.push({ key, value: toBytes({ ...next }) });
    }
    return { number, write };
  }

  return {
    known,
    async decider(request) {
      const device = await known(request);
      if (device) {
        const { personId, grant: { cookie } } = device;
        const read = () => Promise.resolve({ personId, write: emptyWrite() });
        return { isNew: false, read, cookie };
      }
      const secret = jar.newcomer(request);
      if (!secret || !secretPattern.test(secret)) return null;
      const hash = hashOfCookie(secret);
      // One that was signed out needs a new cookie.
      if (await readDevice(kv, hash)) return null;
      return {
        isNew: true,
        async read() {
          const before = await readDevice(kv, hash);
          if (before) return { personId: before.personId, write: emptyWrite() };
          const device = newDevice(id("per"), 0);
          return { personId: device.personId, write: newDeviceWrite(hash, device) };
        },
        cookie: () => Promise.resolve(jar.walletCookie(secret)),
      };
    },
    newDeviceCookie: () => jar.newcomerCookie(jar.newSecret()),
    personOf: async (request) => (await known(request))?.personId ?? null,
    async grantFor(personId) {
      const owner = await ownerOf(kv, personId);
      const { number } = await epochOf(owner);
      return { cookie: () => create(owner, number) };
    },
    async deviceFor(personId) {
      const owner = await ownerOf(kv, personId);
      const secret = jar.newSecret();
      const device = newDevice(owner, (await epochOf(owner)).number);
      return { cookie: jar.walletCookie(secret), sets: deviceSets(hashOfCookie(secret), device) };
    },
    async signOutOthers(request) {
      for (;;) {
        const found = await sent(request);
        if (!found) return null;
        const { device, epoch } = found;
        const person = await ownerOf(kv, device.personId);
        // This cookie has already signed out the others: a repeated request does so once.
        if (device.epoch !== epoch.number) {
          return { cookie: await create(person, (await epochOf(person)).number) };
        }
        const { number, write } = await newEpoch(person, found);
        const secret = jar.newSecret();
        const added = newDeviceWrite(hashOfCookie(secret), newDevice(person, number));
        write.checks.push(...added.checks);
        write.sets.push(...added.sets);
        const committed = await committer.commit(write);
        if (committed !== null) return { cookie: jar.walletCookie(secret) };
      }
    },
    async forget(request) {
      for (const secret of [jar.wallet(request), jar.newcomer(request)]) {
        const hash = secret && hashOfCookie(secret);
        const device = hash && await readDevice(kv, hash);
        if (!hash || !device) continue;
        await committer.commit({ ...emptyWrite(), deletes: deviceKeys(hash, device) });
      }
      return jar.clearing;
    },
  };
}

/** The cookies by name: one of a device with a wallet, and one of a device without. */
function createJar(
  { config: { baseUrl }, randomBytes }: Pick<CookieDeps, "config" | "randomBytes">,
) {
  const secure = baseUrl.startsWith("https:");
  // The prefix keeps other hosts of the same site from setting the cookie; it requires https.
  const prefix = secure ? "__Host-farebox" : "farebox";
  const name = `${prefix}_wallet`;
  // A separate cookie: a page that arrives late must not replace a wallet's cookie.
  const newcomersName = `${prefix}_newcomer`;
  const cookie = (of: string, value: string, maxAge = lifetimeMs / 1000) =>
    `${of}=${value}; Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Lax${secure ? "; Secure" : ""}`;
  return {
    newSecret: () => toBase64Url(randomBytes(secretBytes)),
    wallet: (request: Request) => cookieValue(request, name),
    newcomer: (request: Request) => cookieValue(request, newcomersName),
    walletCookie: (secret: string) => cookie(name, secret),
    newcomerCookie: (secret: string) => cookie(newcomersName, secret),
    clearing: [cookie(name, "", 0), cookie(newcomersName, "", 0)],
  };
}
