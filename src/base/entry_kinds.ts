interface EntryKindRow {
  /** Which way the kind moves a balance. A refund takes a deposit back, or gives a charge back. */
  direction: "credit" | "debit" | "either";
  /** Whether a caller's idempotency key guards it, with a record of its own. */
  hasKeyRecord: boolean;
  /** Whether it charges a model's response, and so carries its usage. */
  hasUsage: boolean;
  /** Whether it may collect less than was due. A charge is refused instead. */
  mayFallShort: boolean;
  /**
   * Whether archiving removes it, once it is in a sealed file. What was moved by request stays:
   * its idempotency key is known for ever, and it can be refunded.
   */
  isArchived: boolean;
}

/**
 * Every kind of ledger entry. The names are stored and public: append rows, never rename one.
 * Schemas, metrics, refunds, spend limits, erasure and `farebox verify` read this table.
 */
export const entryKinds = {
  /** Money that was paid in, or that the owner gave. */
  deposit: {
    direction: "credit",
    hasKeyRecord: true,
    hasUsage: false,
    mayFallShort: false,
    isArchived: false,
  },
  /** An amount that the owner's own system charged. */
  charge: {
    direction: "debit",
    hasKeyRecord: true,
    hasUsage: false,
    mayFallShort: false,
    isArchived: false,
  },
  /** The price of a model's response. */
  usage: {
    direction: "debit",
    hasKeyRecord: false,
    hasUsage: true,
    mayFallShort: true,
    isArchived: true,
  },
  /** An earlier entry, taken back in whole or in part. */
  refund: {
    direction: "either",
    hasKeyRecord: true,
    hasUsage: false,
    mayFallShort: true,
    isArchived: false,
  },
  /** The project's trial credits, granted with the user's first operation. */
  trial: {
    direction: "credit",
    hasKeyRecord: false,
    hasUsage: false,
    mayFallShort: false,
    isArchived: false,
  },
  /** What was known to be used by a call whose process died before it settled. */
  expired: {
    direction: "debit",
    hasKeyRecord: false,
    hasUsage: false,
    mayFallShort: true,
    isArchived: true,
  },
  /** Money that moved to or from another wallet, when both became one. No project sees it. */
  transfer: {
    direction: "either",
    hasKeyRecord: false,
    hasUsage: false,
    mayFallShort: false,
    isArchived: false,
  },
  /** What the archived entries of an account came to, as one. */
  carried: {
    direction: "debit",
    hasKeyRecord: false,
    hasUsage: false,
    mayFallShort: true,
    isArchived: true,
  },
} as const satisfies Record<string, EntryKindRow>;

/** Why money moved: a row of `entryKinds`. */
export type EntryKind = keyof typeof entryKinds;

/** The names of all kinds, in the table's order. */
export const entryKindNames = Object.keys(entryKinds) as [EntryKind, ...EntryKind[]];

/** A kind of entry that projects see. */
export type ActivityKind = Exclude<EntryKind, "transfer">;

const isActivityKind = (kind: EntryKind): kind is ActivityKind => kind !== "transfer";

/** The names of the kinds that projects see. */
export const activityKindNames = entryKindNames.filter(isActivityKind);

/** Returns the kind of that name which projects see, or null. */
export function readActivityKind(text: string): ActivityKind | null {
  return activityKindNames.find((kind) => kind === text) ?? null;
}
