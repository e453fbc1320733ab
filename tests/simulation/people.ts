import { formatAmount, toAmount } from "../../src/base/money.ts";
import { type Authorization, decodeAuthorization } from "../../src/ledger/authorization.ts";
import { allConnectionsPrefix, authorizationKey } from "../../src/store/keys.ts";
import { adminKey } from "../support/world.ts";
import type { Callers, Project } from "./callers.ts";
import type { MemoryStore } from "./memory_store.ts";
import type { PasskeysAudit } from "./passkeys_audit.ts";
import { PasskeyUse, type Person } from "./passkeys.ts";
import type { Timeline } from "./timeline.ts";

interface Parts {
  timeline: Timeline;
  callers: Callers;
  passkeys: PasskeysAudit;
  store: MemoryStore;
}

/** The people who own wallets: what they authorize and revoke, on the service's pages. */
export class People {
  readonly #parts: Parts;
  readonly #persons: readonly Person[] = [
    { cookie: null, newcomer: null, passkeys: [], lost: [], isAlone: false },
    { cookie: null, newcomer: null, passkeys: [], lost: [], isAlone: false },
  ];
  /** In some seeds; in the others a device never forgets. */
  #passkeys: PasskeyUse | null = null;
  /** Users about whom a decision is under way. */
  readonly #deciding = new Map<string, number>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** From now on, people have passkeys and lose their devices. */
  usePasskeys(): void {
    this.#passkeys = new PasskeyUse(this.#parts);
  }

  /** Signs everyone in with each passkey, now that nothing fails any more. */
  async comeBack(): Promise<void> {
    await this.#passkeys?.useAll(this.#persons);
  }

  /** Sends responses that were never sent, long after they were requested. */
  async comeLate(): Promise<void> {
    await this.#passkeys?.sendLeftovers();
  }

  /** Whether a decision about this user is still under way. */
  isDeciding(user: string): boolean {
    return (this.#deciding.get(user) ?? 0) > 0;
  }

  /** Returns the wallet that pays for a user now, or null. */
  walletOf({ id }: Project, user: string): Pick<Authorization, "personId" | "connectionId"> | null {
    const { value } = this.#parts.store.read(authorizationKey(id, user));
    const authorization = value && decodeAuthorization(value);
    return authorization?.status === "active" ? authorization : null;
  }

  /** Authorizes a user for the first time, with the first person's wallet. */
  async begin(project: Project, user: string): Promise<void> {
    await this.#allow(project, user, this.#persons[0]);
  }

  /** Decides something about one user, as one of the people or the project. */
  async decide(project: Project, user: string): Promise<void> {
    const { timeline } = this.#parts;
    const person = this.#persons[timeline.chance(0.8) ? 0 : 1];
    if (this.#passkeys && person && timeline.chance(0.5)) {
      return await this.#passkeys.use(person, this.#persons);
    }
    this.#deciding.set(user, (this.#deciding.get(user) ?? 0) + 1);
    const dice = timeline.between(0, 10);
    if (!this.#passkeys && timeline.chance(0.3)) await this.#join(project, user);
    else if (dice < 3) await this.#change(project, user, { person, form: { action: "cap" } });
    else if (dice < 4) await this.#change(project, user, { person, form: { action: "revoke" } });
    else if (dice < 5) await this.disconnect(project, user);
    else await this.#allow(project, user, person);
    this.#deciding.set(user, (this.#deciding.get(user) ?? 0) - 1);
  }

  /**
   * The operator joins the two wallets, while they are used: both owners confirm, some twice. From
   * then on there is one.
   */
  async #join(project: Project, user: string): Promise<void> {
    const { timeline, callers } = this.#parts;
    const from = this.walletOf(project, user)?.personId;
    const into = this.#parts.store.list({ prefix: allConnectionsPrefix, limit: 1_000 })
      .map(({ key }) => String(key[1])).find((owner) => owner !== from);
    if (from === undefined || into === undefined) return;
    const path = `/v1/admin/wallets/${from}/join`;
    await callers.call(path, { key: adminKey, body: { into } });
    const form = { action: "join", from };
    for (const { cookie } of [...this.#persons, ...this.#persons]) {
      if (cookie === null || timeline.chance(0.2)) continue;
      await callers.visit("/wallet", { form, cookie });
      await timeline.pause(timeline.between(0, 500));
    }
  }

  /** The project ends its user's authorization. */
  async disconnect({ apiKey: key }: Project, user: string): Promise<void> {
    await this.#parts.callers.call(`/v1/user/disconnect?user=${user}`, { key, body: {} });
  }

  /**
   * By a link, which another person's decision may invalidate meanwhile; also when it is authorized
   * already.
   */
  async #allow(project: Project, user: string, person: Person | undefined): Promise<void> {
    const { timeline, callers } = this.#parts;
    if (!person) return;
    const path = `/v1/user/connect?user=${user}`;
    if (this.walletOf(project, user)) await this.disconnect(project, user);
    const answer = await callers.call(path, { method: "GET", key: project.apiKey });
    if (typeof answer?.body.url !== "string") return;
    await timeline.pause(timeline.between(0, 2_000));
    const decision = person.cookie === null || timeline.chance(0.9) ? "approve" : "decline";
    // Where another wallet has paid, they know, and go on with their own.
    const form = { decision, cap: this.#cap(), wallet: "new" };
    const link = new URL(answer.body.url).pathname;
    // Some press twice, or give the link to someone else.
    const again = timeline.chance(0.3) ? timeline.pick(this.#persons) : null;
    for (const whoever of again ? [person, again] : [person]) {
      if (whoever.cookie === null) await this.#look(whoever, link);
      const cookie = whoever.cookie ?? whoever.newcomer;
      const headers = await callers.visit(link, { form, cookie });
      whoever.cookie = headers?.get("set-cookie")?.split(";")[0] ?? whoever.cookie;
      await timeline.pause(timeline.between(0, 500));
    }
  }

  /** A new person opens the page first: it sets the cookie that they decide with. */
  async #look(person: Person, link: string): Promise<void> {
    if (person.newcomer !== null) return;
    const headers = await this.#parts.callers.visit(link, { cookie: null });
    person.newcomer = headers?.get("set-cookie")?.split(";")[0] ?? null;
  }

  async #change(
    { id: projectId }: Project,
    user: string,
    { person, form }: { person: Person | undefined; form: { action: string } },
  ): Promise<void> {
    if (!person?.cookie) return;
    const fields = { ...form, projectId, user, cap: this.#cap() };
    await this.#parts.callers.visit("/wallet", { form: fields, cookie: person.cookie });
  }

  #cap(): string {
    const { timeline } = this.#parts;
    const units = timeline.pick([timeline.whole(500_000, 6_000_000), 40_000_000]);
    return formatAmount(toAmount(BigInt(units)));
  }
}
