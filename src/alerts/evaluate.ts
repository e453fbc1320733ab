import type { MakeId } from "../base/ids.ts";
import { bySystem, type NewEvent, newEvent } from "../events/event.ts";
import { type Alert, type AlertState, conditionOf, type Finding } from "./alert.ts";

/** The alerts of one rule that fire at once; further conditions fire once others are resolved. */
const firingMax = 50;
/** Resolved alerts that are kept, and for how long. */
const resolvedMax = 50;
const resolvedForMs = 30 * 24 * 60 * 60 * 1000;

/** The changes since the last evaluation. */
interface Evaluation {
  state: AlertState;
  fired: readonly Alert[];
  resolved: readonly Alert[];
}

/**
 * Compares the conditions that hold now with the alerts: new ones fire, and alerts whose condition
 * no longer holds are resolved. Null where nothing changes.
 */
export function evaluate(
  state: AlertState,
  findings: readonly Finding[],
  { now, id }: { now: number; id: MakeId },
): Evaluation | null {
  const holding = new Set(findings.map(conditionOf));
  const firing = state.alerts.filter(({ resolvedAt }) => resolvedAt === null);
  const ended = firing.filter((alert) => !holding.has(conditionOf(alert)));
  const known = new Set(firing.map(conditionOf));
  const going = firing.filter((alert) => holding.has(conditionOf(alert)));
  const fired: Alert[] = [];
  for (const finding of findings) {
    const { rule } = finding;
    const many = [...going, ...fired].filter((alert) => alert.rule === rule).length;
    if (known.has(conditionOf(finding)) || many >= firingMax) continue;
    fired.push({ ...finding, id: id("alr"), firedAt: now, resolvedAt: null, mailed: "nothing" });
  }
  const resolved = ended.map((alert) => ({ ...alert, resolvedAt: now }));
  const before = state.alerts.filter(({ resolvedAt }) => resolvedAt !== null);
  const kept = before.filter(({ resolvedAt }) => now - (resolvedAt ?? now) < resolvedForMs);
  if (fired.length === 0 && ended.length === 0 && kept.length === before.length) return null;
  const past = [...resolved, ...kept].slice(0, resolvedMax);
  return { state: { ...state, alerts: [...fired, ...going, ...past] }, fired, resolved };
}

/** The events of alerts that have fired or were resolved. */
export function alertEvents({ fired, resolved }: Evaluation): NewEvent[] {
  return [
    ...fired.map((alert) => newEvent("alert.fired", aboutAlert(alert), dataOf(alert))),
    ...resolved.map((alert) =>
      newEvent("alert.resolved", aboutAlert(alert), {
        ...dataOf(alert),
        resolvedAt: new Date(alert.resolvedAt ?? alert.firedAt).toISOString(),
      })
    ),
  ];
}

function aboutAlert({ id, about: { user } }: Alert) {
  const type = user === undefined ? "project" as const : "balance" as const;
  return { trigger: bySystem, subject: { type, id, externalId: user ?? id } };
}

function dataOf({ id, rule, summary, firedAt, about }: Alert) {
  const { subscriptionId = null, sessionId = null, model = null, user = null } = about;
  return {
    alertId: id,
    rule,
    summary,
    firedAt: new Date(firedAt).toISOString(),
    subscriptionId,
    checkoutSessionId: sessionId,
    model,
    externalUserId: user,
  };
}
