import { fromBytes } from "../../src/base/json.ts";
import type { Entry } from "../../src/ledger/entry.ts";
import type { Project } from "../../src/projects/schema.ts";
import type { Write } from "../../src/store/kv.ts";
import type { Violations } from "./violations.ts";

/**
 * Refused once a project is archived; payments, usage, reinstatements and forfeits are recorded.
 */
const refusedKinds: readonly Entry["kind"][] = ["deposit", "charge", "trial"];

/** Tracks which projects are archived: these take nothing new, and stay archived. */
export class ArchiveAudit {
  readonly #archived = new Set<string>();
  /** Archived by the current write: its other rows may have come before. */
  #archiving: string[] = [];
  readonly #violations: Violations;

  constructor(violations: Violations) {
    this.#violations = violations;
  }

  /** Called with each write that has landed, before its entries and holds. */
  landed({ sets }: Write): void {
    for (const id of this.#archiving) this.#archived.add(id);
    this.#archiving = [];
    for (const { key, value } of sets) {
      if (key[0] !== "project") continue;
      const { id, status } = fromBytes<Project>(value);
      if (status === "archived") this.#archiving.push(id);
      const stays = status === "archived" || !this.#archived.has(id);
      this.#violations.must(stays, "an archived project stays archived", () => id);
    }
  }

  /** Called with each new entry. */
  booked(projectId: string, entry: Entry): void {
    const { kind, metadata } = entry;
    const isOld = metadata?.source === "stripe" || metadata?.reason === "forfeited";
    if (refusedKinds.includes(kind) && !isOld) this.#mustBeOpen(projectId, JSON.stringify(entry));
  }

  /** Called with each new hold. */
  held(projectId: string, holdId: string): void {
    this.#mustBeOpen(projectId, holdId);
  }

  #mustBeOpen(projectId: string, what: string): void {
    const isOpen = !this.#archived.has(projectId);
    this.#violations.must(isOpen, "an archived project takes nothing new", () => what);
  }
}
