import { tokenClassRows } from "../base/token_classes.ts";
import { badRequest } from "../base/errors.ts";
import type { Handler } from "../base/handler.ts";
import { formatAmount } from "../base/money.ts";
import { jsonResponse } from "../base/response.ts";
import { parseMoment, requireRange } from "../base/moment.ts";
import type { Deps } from "../deps.ts";
import type { ProjectCache } from "../projects/project_cache.ts";
import { type AdminGuard, checkId } from "../projects/admin_guard.ts";
import { monthOf } from "../base/period.ts";
import { readSummary, type SummaryTotals } from "./summary.ts";
import { readTopSpenders, readTopUsers } from "./top_users.ts";

interface SummaryDeps {
  deps: Deps;
  adminGuard: AdminGuard;
  projectCache: ProjectCache;
}

const dayMs = 24 * 60 * 60 * 1000;
const daysMax = 400;

/**
 * `GET /v1/admin/projects/{id}/summary`: what was used, paid and refused from `from` until `to`
 * (ISO 8601; the last day by default), by hour and model, and who spent most in the month of `to`.
 */
export function summaryRoutes(
  { deps: { kv, clock }, adminGuard, projectCache }: SummaryDeps,
): { summary: Handler } {
  return {
    summary: adminGuard(async ({ requestId, param, query }) => {
      const projectId = checkId(param("projectId"), "project");
      const { project: { currency } } = await projectCache.refresh(projectId);
      const to = readTime("to", query("to")) ?? clock.now() + 1;
      const from = readTime("from", query("from")) ?? to - dayMs;
      requireRange({ from, to });
      if (to - from > daysMax * dayMs) {
        throw badRequest("from", `'from' must be at most ${daysMax} days before 'to'.`);
      }
      const summary = await readSummary(kv, projectId, { from, to });
      const month = monthOf(to - 1);
      const users = await readTopUsers(kv, projectId, month);
      const spenders = await readTopSpenders(kv, projectId, { from, to });
      const body = {
        currency,
        from: new Date(from).toISOString(),
        to: new Date(to).toISOString(),
        totals: viewTotals(summary.totals),
        hours: summary.hours.map(({ start, totals }) => ({
          start: new Date(start).toISOString(),
          totals: viewTotals(totals),
        })),
        models: summary.models.map(({ model, ...totals }) => ({ model, ...viewTotals(totals) })),
        refusals: summary.refusals,
        failures: summary.failures,
        refusedCharges: summary.refusedCharges,
        unpriced: summary.unpriced,
        targets: summary.targets.map((target) => ({
          ...target,
          cost: formatAmount(target.cost),
          upstreamCost: formatAmount(target.upstreamCost),
        })),
        topUsers: {
          month,
          users: users.map((user) => ({ ...user, spent: formatAmount(user.spent) })),
        },
        topSpenders: spenders.map(({ user, spent, atMost }) => ({
          user,
          spent: formatAmount(spent),
          atMost: formatAmount(atMost),
        })),
      };
      return jsonResponse(200, body, requestId, { "cache-control": "no-store" });
    }),
  };
}

function readTime(name: string, text: string | undefined): number | null {
  if (text === undefined) return null;
  const time = parseMoment(text);
  if (time !== null) return time;
  throw badRequest(name, `'${name}' must be a time such as 2026-11-21 or 2026-11-21T08:00:00Z.`);
}

/** Amounts as decimal strings. */
function viewTotals(totals: SummaryTotals): Record<string, unknown> {
  const { requests, calls, failed, canceled, refused, repeated } = totals;
  const { cost, revenue, givenBack, upstreamCost, margin, shortfall } = totals;
  const { deposits, charges, otherCharges, takenBack, trials } = totals;
  const amounts = {
    ...{ cost, revenue, givenBack, upstreamCost, margin, shortfall },
    ...{ deposits, charges, otherCharges, takenBack, trials },
  };
  const shown = Object.entries(amounts).map(([name, amount]) => [name, formatAmount(amount)]);
  const tokens = Object.fromEntries(tokenClassRows.map(({ name }) => [name, totals[name]]));
  const counts = { requests, calls, failed, canceled, refused, repeated };
  const moved = Object.entries(totals.movements).map(([name, amount]) =>
    [name, formatAmount(amount)] as const
  );
  const movements = Object.fromEntries(moved);
  return { ...counts, ...tokens, ...Object.fromEntries(shown), movements };
}
