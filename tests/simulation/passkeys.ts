import type { AuthenticationResponseJSON } from "@simplewebauthn/server";
import { z } from "zod";
import { SoftPasskey } from "../support/passkey.ts";
import type { Callers } from "./callers.ts";
import { deviceKey } from "../../src/store/keys.ts";
import { decodeDevice, hashOfCookie } from "../../src/wallets/device_rows.ts";
import type { MemoryStore } from "./memory_store.ts";
import type { PasskeysAudit } from "./passkeys_audit.ts";
import type { Timeline } from "./timeline.ts";

/** A person's device: its cookie, once there is a wallet, and their passkeys. */
export interface Person {
  cookie: string | null;
  /** The cookie of the first page that asked them, on this device. */
  newcomer: string | null;
  passkeys: SoftPasskey[];
  /** Cookies of devices that they lost. */
  lost: string[];
  /** They are signing out their other devices. */
  isAlone: boolean;
}

interface Parts {
  timeline: Timeline;
  callers: Pick<Callers, "call" | "visit">;
  passkeys: PasskeysAudit;
  store: MemoryStore;
}

const origin = "https://farebox.test";
const passkeysMax = 3;
const triesMax = 3;
/** Without faults: a late write may still interfere with a few. */
const refusalsMax = 6;

const named = z.object({ id: z.string() });
const optionsSchema = z.object({
  challenge: z.string(),
  user: named,
  excludeCredentials: z.array(named),
});
const challengeSchema = z.object({ challenge: z.string() });

/** How people return to their wallets: from another device, or after they had left. */
export class PasskeyUse {
  readonly #parts: Parts;
  /** The random source of keys. */
  readonly #random: () => number;
  /** Passkeys whose removal the service has acknowledged. */
  readonly #removed: SoftPasskey[] = [];
  /** Passkey responses that were never sent. */
  readonly #leftovers: AuthenticationResponseJSON[] = [];

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#random = parts.timeline.fork();
  }

  /** Adds or removes a passkey, signs in with one, or signs out lost devices. */
  async use(person: Person, others: readonly Person[]): Promise<void> {
    const { timeline, callers } = this.#parts;
    const { passkeys } = person;
    if (person.cookie !== null && timeline.chance(0.25)) {
      const ends = passkeys.length > 0 && timeline.chance(0.5);
      return await (ends
        ? this.#remove(person, person.cookie)
        : this.#signOut(person, person.cookie));
    }
    const isEnough = passkeys.length >= passkeysMax || timeline.chance(0.75);
    if (passkeys.length === 0 || !isEnough) return await this.#add(person, others);
    const { cookie } = person;
    // A device that forgets its wallet is removed: nothing else may be under way on it.
    const leaves = cookie !== null && !person.isAlone && timeline.chance(0.3);
    person.cookie = person.newcomer = null;
    if (leaves) await callers.visit("/wallet", { form: { action: "leave" }, cookie });
    else if (cookie !== null) person.lost.push(cookie);
    for (let tries = 0; tries < triesMax && person.cookie === null; tries++) {
      if ((await this.#comeBack(person, timeline.pick(passkeys))) === "left") return;
      await timeline.pause(timeline.between(0, 2_000));
    }
  }

  /** Signs everyone in with each registered passkey, now that nothing fails any more. */
  async useAll(persons: readonly Person[]): Promise<void> {
    for (const person of persons) {
      for (const passkey of person.passkeys) {
        if (this.#parts.passkeys.isTaken(passkey.id)) await this.#mustComeBack(person, passkey);
      }
    }
    for (const passkey of this.#removed) {
      const nobody: Person = {
        cookie: null,
        newcomer: null,
        passkeys: [],
        lost: [],
        isAlone: false,
      };
      await this.#comeBack(nobody, passkey);
    }
  }

  async #mustComeBack(person: Person, passkey: SoftPasskey): Promise<void> {
    const { timeline, passkeys } = this.#parts;
    for (let refusals = 0; refusals < refusalsMax;) {
      const outcome = await this.#comeBack(person, passkey);
      if (outcome === "in") return passkeys.cameBack(passkey.id, true);
      if (outcome === "refused") refusals++;
      await timeline.pause(timeline.between(1_000, 6_000));
    }
    // A removal may have been under way when the sign-ins started.
    passkeys.cameBack(passkey.id, !passkeys.isTaken(passkey.id));
  }

  /** Removes the passkey of a lost device; repeated until it is known to be gone, or given up. */
  async #remove(person: Person, cookie: string): Promise<void> {
    const { timeline, callers, passkeys } = this.#parts;
    const shown = await this.#look(cookie);
    // A passkey that is being added at the same time may come after its removal.
    const there = person.passkeys.filter(({ id }) => shown && passkeys.isTaken(id, shown.personId));
    if (there.length === 0) return;
    const passkey = timeline.pick(there);
    person.passkeys = person.passkeys.filter((other) => other !== passkey);
    passkeys.isGoing(passkey.id);
    const form = { action: "remove-passkey", passkey: passkey.id };
    for (let tries = 0; tries < triesMax; tries++) {
      const headers = await callers.visit("/wallet", { form, cookie });
      if (headers?.has("location")) {
        passkeys.removed(passkey.id);
        return void this.#removed.push(passkey);
      }
      await timeline.pause(timeline.between(5, 3_000));
    }
  }

  /**
   * The cookie of a lost device no longer works; the device that signed it out stays, with either
   * cookie.
   */
  async #signOut(person: Person, cookie: string): Promise<void> {
    const { timeline, callers, passkeys } = this.#parts;
    if (person.isAlone) return;
    person.isAlone = true;
    if (!await this.#look(cookie)) return void (person.isAlone = false);
    const owner = this.#personOf(cookie);
    const isOther = (lost: string) =>
      lost !== cookie && owner !== null && this.#personOf(lost) === owner;
    const lost = person.lost.filter(isOther);
    const form = { action: "sign-out-others" };
    const visits = [callers.visit("/wallet", { form, cookie })];
    if (timeline.chance(0.3)) visits.push(callers.visit("/wallet", { form, cookie }));
    for (const headers of await Promise.all(visits)) {
      const given = headers?.get("set-cookie")?.split(";")[0];
      if (!headers?.has("location") || given === undefined) continue;
      person.cookie = given;
      for (const own of [cookie, given]) {
        const answer = await this.#send("/wallet/passkeys/options", {}, own);
        passkeys.mustBeKnown(answer?.status ?? null, own);
      }
      for (const other of lost.splice(0)) {
        const answer = await this.#send("/wallet/passkeys/options", {}, other);
        passkeys.mustNotCount(answer?.status ?? null, `${other}, which was signed out`);
        person.lost.splice(person.lost.indexOf(other), 1);
      }
    }
    person.isAlone = false;
  }

  /** The owner of a cookie: a device that forgets its wallet may get another. */
  #personOf(cookie: string): string | null {
    const hash = hashOfCookie(cookie.slice(cookie.indexOf("=") + 1));
    return decodeDevice(this.#parts.store.read(deviceKey(hash)).value)?.personId ?? null;
  }

  /** Long after they were requested. */
  async sendLeftovers(): Promise<void> {
    for (const response of this.#leftovers.splice(0)) {
      const answer = await this.#send("/wallet/sign-in", response);
      this.#parts.passkeys.mustNotCount(answer?.status ?? null, `${response.id}, late`);
    }
  }

  /** Repeated until the outcome is known, and kept by the device in any case. */
  async #add(person: Person, others: readonly Person[]): Promise<void> {
    const { timeline, passkeys } = this.#parts;
    const { cookie } = person;
    const options = cookie === null ? null : await this.#look(cookie);
    if (!options) return;
    const seed = Uint8Array.from({ length: 32 }, () => Math.floor(this.#random() * 256));
    const passkey = new SoftPasskey(seed, { origin, step: timeline.pick([0, 0, 1]) });
    passkeys.made(passkey.id, options.personId);
    person.passkeys.push(passkey);
    const response = passkey.created(options.challenge);
    await timeline.pause(timeline.between(0, 3_000));
    const stranger = timeline.pick(others);
    if (stranger !== person && stranger.cookie !== null && timeline.chance(0.3)) {
      const answer = await this.#send("/wallet/passkeys", response, stranger.cookie);
      passkeys.mustNotCount(answer?.status ?? null, `${passkey.id}, by another person's device`);
    }
    for (let tries = 0; tries < triesMax; tries++) {
      const answer = await this.#send("/wallet/passkeys", response, cookie);
      passkeys.told(passkey.id, answer?.status ?? null);
      if (answer && answer.status !== 503) return;
      await timeline.pause(timeline.between(5, 3_000));
    }
  }

  async #comeBack(person: Person, passkey: SoftPasskey) {
    const { timeline } = this.#parts;
    const asked = await this.#send("/wallet/sign-in/options", {});
    if (asked?.status !== 200) return "unknown";
    const { challenge } = challengeSchema.parse(asked.body);
    await timeline.pause(timeline.between(0, 3_000));
    const response = passkey.answered(challenge);
    if (timeline.chance(0.1)) {
      this.#leftovers.push(response);
      return "left";
    }
    const answers = [this.#answer(person, passkey, { challenge, response })];
    // Some press twice, and some responses are replayed.
    if (timeline.chance(0.4)) {
      await timeline.pause(timeline.pick([0, 0, timeline.between(0, 2_000)]));
      answers.push(this.#answer(person, passkey, { challenge, response }));
    }
    const outcomes = await Promise.all(answers);
    return (["in", "unknown"] as const).find((one) => outcomes.includes(one)) ?? "refused";
  }

  async #answer(
    person: Person,
    { id }: SoftPasskey,
    { challenge, response }: { challenge: string; response: AuthenticationResponseJSON },
  ) {
    const { passkeys } = this.#parts;
    const wasRemoved = passkeys.isRemoved(id);
    const answer = await this.#send("/wallet/sign-in", response);
    if (answer?.status === 400) return "refused";
    if (answer?.status !== 200) return "unknown";
    if (wasRemoved) passkeys.mustNotCount(answer.status, `${id}, which was removed`);
    passkeys.letIn(id, challenge);
    const cookie = answer.headers.get("set-cookie")?.split(";")[0] ?? null;
    const shown = cookie === null ? null : await this.#look(cookie);
    if (shown) passkeys.isLetInAs(id, shown.personId);
    person.cookie = cookie;
    return "in";
  }

  /** Returns the person that the service knows a device as, and the options to create a passkey. */
  async #look(cookie: string): Promise<{ challenge: string; personId: string } | null> {
    const { passkeys } = this.#parts;
    const taken = passkeys.taken();
    const answer = await this.#send("/wallet/passkeys/options", {}, cookie);
    if (answer?.status !== 200) return null;
    const { challenge, user, excludeCredentials } = optionsSchema.parse(answer.body);
    const personId = atob(user.id);
    passkeys.shown(personId, excludeCredentials.map(({ id }) => id), taken);
    return { challenge, personId };
  }

  #send(path: string, body: unknown, cookie: string | null = null) {
    const headers: Record<string, string> = cookie === null ? {} : { cookie };
    return this.#parts.callers.call(path, { key: "none", body, headers });
  }
}
