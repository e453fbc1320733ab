/** @jsxImportSource @hono/hono/jsx */
import { ApiError, badRequest } from "../base/errors.ts";
import { type Payable, payableIn, payableTopUp, type TopUpRange } from "../base/currency.ts";
import { isId } from "../base/ids.ts";
import type { Handler } from "../base/handler.ts";
import { publicPath } from "../config.ts";
import {
  type Amount,
  formatAmount,
  formatForPeople,
  parseAmount,
  typedDecimal,
  zero,
} from "../base/money.ts";
import type { AccountRef } from "../ledger/account.ts";
import { listActivities } from "../ledger/activities.ts";
import { findAccount } from "../ledger/authorization.ts";
import { readBalance } from "../ledger/balance.ts";
import type { Project } from "../projects/schema.ts";
import { startCheckout } from "../payments/checkout.ts";
import { listPending } from "../payments/pending.ts";
import { activityForPeople, TopUpPage, topUpScriptHash } from "./top_up_page.tsx";
import { fillTemplate, type Links } from "./links.ts";
import { type CheckoutKind, checkoutKindOf, type PaymentDeps } from "../payments/merchant.ts";
import { readForm, requireSameOrigin } from "../pages/form.ts";
import { asPage, pageResponse, seeOther } from "../pages/response.tsx";
import { acceptsAmount } from "../payments/stripe.ts";

const activitiesShown = 20;

/** What the hosted top-up page depends on. */
export interface PaywallDeps extends Omit<PaymentDeps, "reportUnbooked"> {
  links: Links;
  /** Returns the person whose device sent a request; null for an unknown device. */
  deviceCookies: { personOf(request: Request): Promise<string | null> };
}

/** The pages that a person opens from a paywall message. Reading one changes nothing. */
export function paywallRoutes(services: PaywallDeps) {
  return {
    showTopUp: asPage(showTopUp(services), services.deps.config),
    startTopUp: asPage(startTopUp(services), services.deps.config),
  };
}

/**
 * Returns the page's project, user and account. Throws 404 for a link that is forged or has
 * expired.
 */
async function open({ deps, projectCache, links }: PaywallDeps, token: string) {
  const subject = await links.readTopUpLink(token);
  if (!subject) {
    throw new ApiError(404, {
      message: "Go back to your chat and send your message again: you will get a new link.",
    });
  }
  const { project } = await projectCache.current(subject.projectId);
  const ref = await findAccount(deps.kv, project, subject.user);
  if (!ref) {
    throw new ApiError(404, {
      message: "This wallet is no longer connected. Go back to your chat to connect one.",
    });
  }
  return { ref, project };
}

function showTopUp(services: PaywallDeps): Handler {
  return async ({ request, param, requestId }) => {
    const { deps, deviceCookies } = services;
    const { ref, project } = await open(services, param("token"));
    const { currency, topUp: { checkoutUrl } } = project;
    const shown = !ref.wallet || ref.wallet.personId === await deviceCookies.personOf(request);
    const { balance } = await readBalance(deps.kv, ref, deps.clock.now());
    const page = { limit: activitiesShown, cursor: undefined };
    const entries = shown ? (await listActivities(deps.kv, ref, page)).entries : [];
    const pending = shown ? await listPending(deps.kv, project.id, ref.user) : [];
    const kind = checkoutKindOf(deps.config, project);
    const range = rangeOf(project, kind);
    const html = (
      <TopUpPage
        projectName={project.name}
        user={ref.user}
        balanceFormatted={shown ? formatForPeople(balance, currency) : null}
        pending={pending.map((amount) => formatForPeople(amount, currency))}
        checkout={kind === "none" || kind === "sandbox" ? kind : "checkout"}
        formId={deps.id("form")}
        amounts={range.amounts.map((value) => ({
          value,
          label: formatForPeople(parseAmount(value) ?? zero, currency),
        }))}
        range={{ min: range.min, max: range.max, currency }}
        activities={entries.map((entry) => activityForPeople(entry, currency))}
      />
    );
    const formTargets = targetsOf(kind, checkoutUrl);
    return pageResponse(200, String(html), { requestId, formTargets, script: topUpScriptHash });
  };
}

/**
 * Returns where the forms may redirect. Browsers check every redirect after a form against this
 * list: a checkout may redirect to another site, and Stripe's may use a domain of the owner's.
 */
function targetsOf(kind: CheckoutKind, checkoutUrl: string | null): string[] {
  if (kind !== "stripe" && kind !== "own") return [];
  return checkoutUrl?.startsWith("http:") && kind === "own" ? ["https:", "http:"] : ["https:"];
}

/** Handles the page's form: creates the checkout session and redirects to it. */
function startTopUp(services: PaywallDeps): Handler {
  return async ({ request, param, path, requestId, inTime }) => {
    requireSameOrigin(request, services.deps.config);
    const { ref, project } = await open(services, param("token"));
    const kind = checkoutKindOf(services.deps.config, project);
    if (kind === "none") {
      throw new ApiError(405, {
        message: "This app takes no payments.",
        headers: { allow: "GET, HEAD" },
      });
    }
    const { amount, formId } = readTopUp(
      await inTime(readForm(request, services.deps.config)),
      { ...project, topUp: { ...project.topUp, ...rangeOf(project, kind) } },
      payableIn(project.currency, kind === "stripe"),
    );
    switch (kind) {
      case "stripe": {
        const url = await startCheckout(services, {
          project,
          ref,
          amount,
          formId,
          path,
          requestId,
        });
        return seeOther(url, requestId);
      }
      case "own": {
        const { checkoutUrl } = project.topUp;
        const values = { user: ref.user, project: project.id, amount: formatAmount(amount) };
        // Encoded as a URL: a header may not contain other characters.
        return seeOther(new URL(fillTemplate(checkoutUrl ?? "", values)).href, requestId);
      }
      case "sandbox":
        await depositInSandbox(services, { ref, amount, formId });
        return seeOther(publicPath(services.deps.config, path), requestId);
    }
  };
}

/** Returns the amounts of a project that can be paid there. */
function rangeOf({ topUp, currency }: Project, kind: CheckoutKind): TopUpRange {
  return payableTopUp(topUp, currency, kind === "stripe");
}

function readTopUp(
  form: URLSearchParams,
  project: Project,
  { step }: Payable,
): { amount: Amount; formId: string } {
  const amount = parseAmount(typedDecimal(form.get("amount") ?? ""));
  const { min, max } = project.topUp;
  if (amount === null || !acceptsAmount(project, amount)) {
    const currency = project.currency.toUpperCase();
    throw badRequest("amount", `Choose an amount from ${min} to ${max} ${currency}.`);
  }
  if (amount % step !== 0n) {
    const currency = project.currency.toUpperCase();
    const steps = formatAmount(step);
    throw badRequest("amount", `Choose an amount in steps of ${steps} ${currency}.`);
  }
  const formId = form.get("formId") ?? "";
  if (!isId("form", formId)) {
    throw badRequest("formId", "This page has expired. Open it again from your chat.");
  }
  return { amount, formId };
}

/**
 * The checkout of development: deposits at once, an amount once for each page however often it is
 * sent.
 */
async function depositInSandbox(
  { recorder }: PaywallDeps,
  { ref, amount, formId }: { ref: AccountRef; amount: Amount; formId: string },
): Promise<void> {
  const actor = { actorType: "end-user" as const, actorId: ref.user };
  await recorder.deposit({
    ref,
    amount,
    metadata: { source: "sandbox" },
    key: `sandbox:${formId}:${formatAmount(amount)}`,
    issuer: "sandbox",
    origin: { trigger: { source: "checkout", ...actor }, source: "sandbox" },
  });
}
