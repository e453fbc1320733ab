/** A budget that many senders share, and the most that one of them may take of it. */
interface SharedBudget {
  /** The setting that it is a part of. */
  of: "REQUESTS_MAX" | "BODIES_BYTES_MAX";
  /** One in this many of that setting. */
  part: number;
  sharedBy: string;
  /** Who has a share of their own; null where the budget only counts what may be left out. */
  each: "client address" | "API key" | "project and API key" | null;
  /** One in this many of the budget is the most that each may take. */
  eachPart: number;
}

/**
 * Every budget of places and memory that senders share who do not trust each other. A client
 * address is one of IPv4, or a network of 64 bits of IPv6; see `networkOf`.
 *
 * Places of unknown senders are bodies that a handler waits for. Together these groups have a
 * quarter of all requests, and none has a place of another's: nobody can hold up Stripe's events,
 * or the console's sign-in, by posting to a page.
 */
export const sharedBudgets = {
  stripe: {
    of: "REQUESTS_MAX",
    part: 16,
    sharedBy: "whoever posts to the webhooks for Stripe",
    each: "client address",
    eachPart: 8,
  },
  consoleSignIn: {
    of: "REQUESTS_MAX",
    part: 16,
    sharedBy: "whoever signs in to the console",
    each: "client address",
    eachPart: 8,
  },
  topUps: {
    of: "REQUESTS_MAX",
    part: 16,
    sharedBy: "whoever opens a checkout from a top-up page",
    each: "client address",
    eachPart: 8,
  },
  wallets: {
    of: "REQUESTS_MAX",
    part: 16,
    sharedBy: "whoever authorizes an app, or signs in to a wallet with a passkey",
    each: "client address",
    eachPart: 8,
  },
  calls: {
    of: "REQUESTS_MAX",
    part: 1,
    sharedBy: "all calls of models",
    each: "project and API key",
    eachPart: 2,
  },
  stripeBodies: {
    of: "BODIES_BYTES_MAX",
    part: 16,
    sharedBy: "events in Stripe's name whose length is not announced",
    each: "client address",
    eachPart: 8,
  },
  callersBodies: {
    of: "BODIES_BYTES_MAX",
    part: 1,
    sharedBy: "requests with a key",
    each: "API key",
    eachPart: 2,
  },
  responses: {
    of: "BODIES_BYTES_MAX",
    part: 8,
    sharedBy: "responses of upstreams; one that does not fit is passed on in parts",
    each: null,
    eachPart: 1,
  },
} as const satisfies Readonly<Record<string, SharedBudget>>;

/** The groups of unknown senders whose bodies a handler waits for. */
export type StrangersGroup = "stripe" | "consoleSignIn" | "topUps" | "wallets";

/** So many places a sender gets, unless that is more than half of the budget: of small budgets. */
const placesLeast = 4;

/** The size of a budget of a setting's value, and the most that one sender may take. */
export function sizesOf(
  name: keyof typeof sharedBudgets,
  setting: number,
): { all: number; each: number } {
  const { of, part, eachPart } = sharedBudgets[name];
  const all = Math.ceil(setting / part);
  const share = Math.ceil(all / eachPart);
  const least = of === "REQUESTS_MAX" ? Math.min(placesLeast, Math.ceil(all / 2)) : 0;
  return { all, each: Math.max(share, least) };
}
