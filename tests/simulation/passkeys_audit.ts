import { fromBytes } from "../../src/base/json.ts";
import type { Write } from "../../src/store/kv.ts";
import type { Passkey } from "../../src/wallets/store.ts";
import type { Violations } from "./violations.ts";

/** A passkey as its person knows it. */
interface Made {
  personId: string;
  /** Whether the service has said that it took it up. */
  taken: boolean;
  /** Whether it may have been taken up without a word. */
  sent: boolean;
  /** Whether the service has said that it opens nothing any more. */
  removed: boolean;
}

/** Follows people's passkeys: whom each lets in, and what is stored of them. */
export class PasskeysAudit {
  /** By id. */
  readonly #made = new Map<string, Made>();
  /** By id: what is stored of it. */
  readonly #stored = new Map<string, Passkey>();
  /** Rows of persons: person and id. */
  readonly #owned = new Set<string>();
  /** Challenges that let somebody in, each with the passkey that answered it. */
  readonly #used = new Set<string>();
  readonly #violations: Violations;

  constructor(violations: Violations) {
    this.#violations = violations;
  }

  /** One write that has landed. */
  landed({ sets, deletes }: Write): void {
    const touched = new Set<string>();
    for (const { key: [kind, first, id], value } of sets) {
      if (kind === "passkey") this.#store(String(first), fromBytes<Passkey>(value));
      else if (kind === "person_passkey") this.#owned.add(`${first} ${id}`);
      else continue;
      touched.add(String(id ?? first));
    }
    for (const [kind, first, id] of deletes) {
      if (kind === "passkey") {
        this.#stored.delete(String(first));
        // An empty wallet whose users were all erased goes with its passkeys.
        const made = this.#made.get(String(first));
        if (made) made.taken = false;
      } else if (kind === "person_passkey") this.#owned.delete(`${first} ${id}`);
      else continue;
      touched.add(String(id ?? first));
    }
    for (const id of touched) {
      const personId = this.#made.get(id)?.personId;
      const isWhole = this.#stored.has(id) === this.#owned.has(`${personId} ${id}`);
      this.#must(isWhole, "both rows of a passkey are there, or none", () => id);
    }
  }

  #store(id: string, passkey: Passkey): void {
    const known = this.#stored.get(id);
    const isTheirs = passkey.personId === this.#made.get(id)?.personId &&
      (known?.publicKey ?? passkey.publicKey) === passkey.publicKey;
    this.#must(isTheirs, "a passkey is its person's", () => `${id} ${JSON.stringify(passkey)}`);
    this.#stored.set(id, passkey);
  }

  /** One that a device has made, for the person whom the service named. */
  made(id: string, personId: string): void {
    this.#made.set(id, { personId, taken: false, sent: false, removed: false });
  }

  /** What the service said when one was sent to it; null when it said nothing. */
  told(id: string, status: number | null): void {
    const made = this.#made.get(id);
    if (!made) return;
    const isFine = status !== 400 || made.sent;
    this.#must(isFine, "a new passkey is registered", () => id);
    made.sent = true;
    if (status === 200) made.taken = true;
  }

  /** The service has said that it took it up: as that person's, where one is named. */
  isTaken(id: string, personId = this.#made.get(id)?.personId): boolean {
    const made = this.#made.get(id);
    return made !== undefined && made.taken && made.personId === personId;
  }

  /** Its person is having it removed: from now on it may be there, or not. */
  isGoing(id: string): void {
    const made = this.#made.get(id);
    if (made) made.taken = false;
  }

  /** The service has said that it is gone. */
  removed(id: string): void {
    const made = this.#made.get(id);
    if (made) made.removed = true;
    this.#must(!this.#stored.has(id), "a passkey that is removed is gone", () => id);
  }

  isRemoved(id: string): boolean {
    return this.#made.get(id)?.removed ?? false;
  }

  /** Those that the service has taken up by now. */
  taken(): string[] {
    return [...this.#made].flatMap(([id, { taken }]) => (taken ? [id] : []));
  }

  /** What the service knows of a person, when those had been taken up before it was asked. */
  shown(personId: string, known: readonly string[], taken: readonly string[]): void {
    const own = (id: string) => this.#made.get(id)?.personId === personId;
    const expected = taken.filter((id) => this.isTaken(id, personId));
    const isTrue = known.every(own) && expected.every((id) => known.includes(id));
    const about = () => `${personId}: ${known.join(", ")} of ${taken.join(", ")}`;
    this.#must(isTrue, "a person is shown their passkeys", about);
  }

  /** An answer to a challenge has let somebody in. */
  letIn(id: string, challenge: string): void {
    const answer = `${id} ${challenge}`;
    this.#must(!this.#used.has(answer), "a passkey response counts once", () => answer);
    this.#used.add(answer);
  }

  /** Who that is, as the service says. */
  isLetInAs(id: string, personId: string): void {
    const owner = this.#made.get(id)?.personId;
    const about = () => `${id} of ${owner} is ${personId}`;
    this.#must(personId === owner, "a passkey opens the wallet of its own person", about);
  }

  /** What came of one that is used in calm weather, again and again. */
  cameBack(id: string, isLetIn: boolean): void {
    this.#must(isLetIn, "a registered passkey opens its wallet", () => id);
  }

  /** What came of an answer that is sent long after it was asked for, or of a stranger's. */
  mustNotCount(status: number | null, what: string): void {
    this.#must(status !== 200, "an unrequested passkey response does not count", () => what);
  }

  /** What came of a device's question that has signed out the others of its person. */
  mustBeKnown(status: number | null, cookie: string): void {
    const isKnown = status === null || status === 200 || status >= 500;
    this.#must(isKnown, "the device that signs out the others stays known", () => cookie);
  }

  /** What was taken up is kept, and what was removed does not come again. */
  atTheEnd(): void {
    for (const [id, { removed }] of this.#made) {
      const isGone = !removed || !this.#stored.has(id);
      this.#must(isGone, "a passkey that is removed stays away", () => id);
    }
    for (const id of this.taken()) {
      this.#must(this.#stored.has(id), "a registered passkey is kept", () => id);
    }
  }

  #must(holds: boolean, invariant: string, detail: () => string): void {
    this.#violations.must(holds, invariant, detail);
  }
}
