interface EntryReasonRow {
  /** Which way it moves a balance. */
  direction: "credit" | "debit" | "either";
  /** What pages call it. */
  label: string;
  /** What it means, for the API documentation. */
  description: string;
}

/**
 * Every reason for which money moves. The names are stored and public: append rows, never rename
 * one. Summaries, statements, events and pages are by reason.
 */
export const entryReasons = {
  usage: { direction: "debit", label: "Responses", description: "The price of a response." },
  charge: {
    direction: "debit",
    label: "Charges",
    description: "What the owner's own system charged for.",
  },
  payment: { direction: "credit", label: "Payments", description: "Money that the user paid." },
  opening: {
    direction: "credit",
    label: "Opening balances",
    description: "A balance that was brought along from another system.",
  },
  goodwill: { direction: "credit", label: "Goodwill", description: "A gift of the owner." },
  correction: {
    direction: "either",
    label: "Corrections",
    description: "An earlier mistake, put right.",
  },
  transfer: {
    direction: "either",
    label: "Transfers",
    description: "Money that moved between two accounts.",
  },
  trial: {
    direction: "credit",
    label: "Trial credit",
    description: "The project's credit for new users.",
  },
  refund: {
    direction: "credit",
    label: "Refunds",
    description: "A response or a charge, given back to the user.",
  },
  reversal: {
    direction: "either",
    label: "Payments taken back",
    description: "A payment that went back to the payer; as a credit, where that failed.",
  },
  dispute: {
    direction: "debit",
    label: "Disputes",
    description: "A payment that the payer's bank took back.",
  },
  dispute_won: {
    direction: "credit",
    label: "Disputes won",
    description: "A dispute that was decided for the owner.",
  },
  forfeit: {
    direction: "debit",
    label: "Forfeited",
    description: "A balance that was given up, for example when its user was erased.",
  },
} as const satisfies Record<string, EntryReasonRow>;

/** Why money moved: a row of `entryReasons`. */
export type EntryReason = keyof typeof entryReasons;

/** The names of all reasons, in the table's order. */
export const entryReasonNames = Object.keys(entryReasons) as [EntryReason, ...EntryReason[]];

/** One reason, in one of the directions in which it moves money. */
interface MovementColumn {
  /** The reason; with `_in` or `_out` where it moves money both ways. */
  name: string;
  reason: EntryReason;
  direction: "credit" | "debit";
}

/** Each reason in each direction in which it moves money, in the table's order. */
export const movementColumns: readonly MovementColumn[] = entryReasonNames.flatMap((reason) => {
  const { direction } = entryReasons[reason];
  if (direction !== "either") return [{ name: reason, reason, direction }];
  return [
    { name: `${reason}_in`, reason, direction: "credit" as const },
    { name: `${reason}_out`, reason, direction: "debit" as const },
  ];
});

/** The reasons that the kind of an entry tells, with its direction. */
const toldByKind: readonly EntryReason[] = ["usage", "charge", "payment", "trial", "refund"];

/** The movements that are summed apart, since the kinds of their entries do not tell them. */
export const movementsApart = movementColumns.filter(({ reason }) => !toldByKind.includes(reason));

/** The reasons that a caller may give for a deposit; the first one is the default. */
export const depositReasons = ["payment", "opening", "goodwill", "correction", "transfer"] as const;

/** The reasons that a caller may give for a charge; the first one is the default. */
export const chargeReasons = ["charge", "correction", "transfer", "forfeit"] as const;
