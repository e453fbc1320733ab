/** The reasons as the public API states them, in headers and response bodies. */
export const publicRefusalReasons = [
  "insufficient_funds",
  "authorization_required",
  "limit_reached",
  "balance_held",
] as const;
/** A reason as the public API states it. */
type PublicRefusalReason = typeof publicRefusalReasons[number];

/**
 * Every reason for which money is not taken. `code` names it in events, metrics, sums and message
 * settings; `chat` and `charge` are what a model's response and a manual charge state. The words of
 * all three columns are stored or public: never change them.
 */
export const refusalReasons = {
  /** The balance is too small. */
  insufficient_funds: {
    code: "insufficient_funds",
    chat: "insufficient_funds",
    charge: "insufficient_funds",
  },
  /** The user has not yet allowed the project to charge a wallet. */
  authorization_required: {
    code: "authorization_required",
    chat: "authorization_required",
    charge: "authorization_required",
  },
  /** The daily cap that a wallet's owner set. Only that owner can raise it. */
  daily_cap: {
    code: "limit_reached",
    chat: "limit_reached",
    charge: "authorization_required",
  },
  /** The project's own limit of a day or a month. */
  project_limit: {
    code: "spend_limit",
    chat: "limit_reached",
    charge: "limit_reached",
  },
  /** Running calls hold the money: it is missing for now, not forbidden. */
  held_by_running: {
    code: "busy",
    chat: "balance_held",
    charge: "balance_held",
  },
} as const satisfies Record<
  string,
  { code: string; chat: PublicRefusalReason; charge: PublicRefusalReason }
>;

/**
 * When a request that running calls leave no money for may be repeated, in seconds. No money is
 * missing, so nobody has to act.
 */
export const balanceHeldRetrySeconds = 2;

/** Why money is not taken: a row of `refusalReasons`. */
export type RefusalReason = keyof typeof refusalReasons;

/** A reason's name in events, metrics, sums and message settings. */
type RefusalCode = typeof refusalReasons[RefusalReason]["code"];

/** Builds one value for each reason's code. */
export function mapRefusalCodes<T>(make: (code: RefusalCode) => T): Record<RefusalCode, T> {
  const rows = Object.values(refusalReasons).map(({ code }) => [code, make(code)]);
  return Object.fromEntries(rows);
}
