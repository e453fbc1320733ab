import type { Handler } from "../../base/handler.ts";
import { zero } from "../../base/money.ts";
import { jsonResponse } from "../../base/response.ts";
import { type Auth, byKey } from "../../projects/auth.ts";
import { endUser } from "../../projects/end_user.ts";
import {
  type LedgerDeps,
  readMoneyBody,
  readRefundBody,
  respondActivities,
  respondMoney,
  respondRefund,
} from "./money_responses.ts";
import { findAccount } from "../authorization.ts";
import { readBalance } from "../balance.ts";
import { type Balance, type TopUpLink, viewBalance } from "./view.ts";

interface LedgerRouteDeps extends LedgerDeps {
  auth: Auth;
}

/** The endpoints about a user's money. All need the scope `money`. */
export function ledgerRoutes(services: LedgerRouteDeps) {
  return {
    deposit: depositOrCharge(services, "deposit"),
    charge: depositOrCharge(services, "charge"),
    refund: refund(services),
    balance: balance(services),
    topUp: topUp(services),
    activities: activities(services),
  };
}

function depositOrCharge(services: LedgerRouteDeps, verb: "deposit" | "charge"): Handler {
  return async (incoming) => {
    const caller = await services.auth.caller(incoming.request, "money");
    const body = await readMoneyBody(incoming, verb);
    const user = endUser(caller, incoming.request, { body: body.user });
    const { project } = caller.snapshot;
    return await respondMoney(services, verb, {
      project,
      user,
      body,
      incoming,
      trigger: byKey(caller),
      budgetKey: caller.key,
    });
  };
}

function refund(services: LedgerRouteDeps): Handler {
  return async (incoming) => {
    const { request } = incoming;
    const caller = await services.auth.caller(request, "money");
    const body = await readRefundBody(incoming);
    const { project } = caller.snapshot;
    const named = body.user !== undefined || request.headers.has("x-service-user");
    const user = named || project.mode === "shared"
      ? endUser(caller, request, { body: body.user })
      : null;
    return await respondRefund(services, { project, user, body, incoming, trigger: byKey(caller) });
  };
}

function balance({ deps, auth }: LedgerRouteDeps): Handler {
  return async ({ request, requestId, query }) => {
    const caller = await auth.caller(request, "money");
    const user = endUser(caller, request, { query: query("user") });
    const { project } = caller.snapshot;
    const { currency } = project;
    const ref = await findAccount(deps.kv, project, user);
    const { balance, held } = ref ? await readBalance(deps, ref) : { balance: zero, held: zero };
    const body: Balance = { user, currency, ...viewBalance(balance, held, currency) };
    return jsonResponse(200, body, requestId);
  };
}

function topUp({ deps, auth, offer }: LedgerRouteDeps): Handler {
  return async ({ request, requestId, query }) => {
    const caller = await auth.caller(request, "money");
    const user = endUser(caller, request, { query: query("user") });
    const { project } = caller.snapshot;
    const known = await findAccount(deps.kv, project, user);
    const reason = known ? "insufficient_funds" : "authorization_required";
    const trigger = byKey(caller);
    const refused = { reason, trigger, balance: "0", languages: null } as const;
    const { url } = await offer(project, user, refused);
    const body: TopUpLink = { url };
    return jsonResponse(200, body, requestId);
  };
}

function activities({ deps, auth }: LedgerRouteDeps): Handler {
  return async (incoming) => {
    const caller = await auth.caller(incoming.request, "money");
    const user = endUser(caller, incoming.request, { query: incoming.query("user") });
    return await respondActivities({ deps }, { project: caller.snapshot.project, user, incoming });
  };
}
