import { badRequest } from "../base/errors.ts";
import type { Listener } from "../events/listener.ts";
import type { Subscription } from "./schema.ts";

const activeMax = 100;

/** Who listens once this subscription is as it is now. */
export function listening(
  listeners: readonly Listener[],
  { id, events, isActive }: Subscription,
): Listener[] {
  const others = listeners.filter(({ subscriptionId }) => subscriptionId !== id);
  return isActive ? [...others, { subscriptionId: id, events }] : others;
}

/** Throws 400 where as many listen as may. */
export function requireRoom(listeners: readonly Listener[]): void {
  if (listeners.length < activeMax) return;
  throw badRequest(null, `A project has at most ${activeMax} active subscriptions.`);
}
