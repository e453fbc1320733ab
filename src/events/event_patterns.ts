import { eventTypes } from "./catalogue.ts";

/**
 * A subscription and its event patterns. Stored with the project's settings, so that every write
 * sees them.
 */
export interface SubscribedPatterns {
  subscriptionId: string;
  /** Event names, families (`balance.*`) or `*` alone. */
  events: string[];
}

/** Returns the subscriptions that match this event. */
export function subscriptionsMatching(
  listeners: readonly SubscribedPatterns[],
  type: string,
): string[] {
  return listeners.filter(({ events }) => events.some((pattern) => matches(pattern, type)))
    .map(({ subscriptionId }) => subscriptionId);
}

function matches(pattern: string, type: string): boolean {
  if (pattern === "*") return true;
  return pattern.endsWith(".*") ? type.startsWith(pattern.slice(0, -1)) : type === pattern;
}

/** Whether a subscription may use this pattern: an event, a family that has events, or `*`. */
export function isKnownPattern(pattern: string): boolean {
  return eventTypes.some((type) => matches(pattern, type));
}

/** Returns the event name that is spelt most like this one. */
export function nearestEvent(wrong: string): string {
  return nearestOf(eventTypes, wrong);
}

/** Returns the event name or family that is spelt most like this one. */
export function nearestPattern(wrong: string): string {
  const families = eventTypes.flatMap((type) => {
    const parts = type.split(".");
    return parts.slice(1).map((_, at) => `${parts.slice(0, at + 1).join(".")}.*`);
  });
  return nearestOf([...eventTypes, ...families], wrong);
}

function nearestOf(names: readonly string[], wrong: string): string {
  let nearest = "*";
  let least = Infinity;
  for (const known of names) {
    const distance = editDistance(wrong, known);
    if (distance < least) [nearest, least] = [known, distance];
  }
  return nearest;
}

/** Levenshtein distance: the fewest single characters to add, remove or replace. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const changed = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(changed, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
