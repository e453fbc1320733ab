/** @jsxImportSource @hono/hono/jsx */
import { ApiError, badRequest } from "../base/errors.ts";
import { payableIn, payableTopUp, type TopUpRange } from "../projects/currency.ts";
import { isId } from "../base/ids.ts";
import type { Handler } from "../base/handler.ts";
import { publicPath } from "../config/config.ts";
import {
  type Amount,
  formatAmount,
  fromDecimal,
  parseAmount,
  typedDecimal,
  zero,
} from "../base/money.ts";
import type { AccountRef } from "../ledger/account.ts";
import { listActivities } from "../ledger/activities.ts";
import { findAccount } from "../ledger/authorization.ts";
import { readBalance } from "../ledger/balance.ts";
import type { Project } from "../projects/schema.ts";
import { isFromThisMachine } from "../projects/this_machine.ts";
import { startCheckout } from "../payments/checkout.ts";
import { listPending } from "../payments/pending.ts";
import { TopUpPage, type TopUpView } from "./top_up_page.tsx";
import { fillTemplate, type Links } from "./links.ts";
import { takesTestMoney } from "../payments/test_mode.ts";
import { type CheckoutKind, checkoutKindOf, type PaymentDeps } from "../payments/merchant.ts";
import { brandOf } from "../pages/brand.ts";
import { type Reader, readerOf } from "../pages/texts/texts.tsx";
import { readForm, requireSameOrigin } from "../pages/form.ts";
import { asPage, pageResponse, seeOther } from "../pages/response.tsx";
import { acceptsAmount } from "../payments/stripe.ts";

const activitiesShown = 50;

/** What the hosted top-up page depends on. */
interface PaywallDeps extends PaymentDeps {
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
  return async ({ request, param, query, requestId }) => {
    const opened = await open(services, param("token"));
    const returned = query("paid") !== undefined;
    return await topUpPage(services, { ...opened, request, requestId, returned, problem: null });
  };
}

/** Someone returns from a checkout within this time. */
const returnMs = 60 * 60 * 1000;

async function topUpPage(services: PaywallDeps, { ref, project, request, requestId, ...shown }: {
  ref: AccountRef;
  project: Project;
  request: Request;
  requestId: string;
  returned: boolean;
  problem: TopUpView["problem"];
}): Promise<Response> {
  const { deps, deviceCookies } = services;
  const { currency, topUp: { checkoutUrl } } = project;
  const now = deps.clock.now();
  const reader = readerOf(request);
  const brand = brandOf(project.name, project.brand);
  const seen = !ref.wallet || ref.wallet.personId === await deviceCookies.personOf(request);
  const { balance } = await readBalance(deps, ref);
  const page = { limit: activitiesShown, cursor: undefined };
  const entries = seen ? (await listActivities(deps.kv, ref, page)).entries : [];
  const pending = seen ? await listPending(deps.kv, project.id, ref.user) : [];
  const deposit = entries.find(({ kind }) => kind === "deposit");
  const arrived = deposit !== undefined && deposit.createdAt > now - returnMs ? deposit : null;
  const kind = checkoutKindOf(deps.config, project);
  const range = rangeOf(project, kind);
  const money = (amount: Amount) => reader.money(amount, currency);
  const plain = (amount: string) => reader.moneyText(parseAmount(amount) ?? zero, currency);
  const html = (
    <TopUpPage
      base={publicPath(deps.config, "")}
      {...{ reader, brand, now }}
      user={ref.user}
      balance={seen ? money(balance) : null}
      pending={pending.map(money)}
      returned={shown.returned ? { arrived: arrived && money(fromDecimal(arrived.delta)) } : null}
      checkout={kind}
      isTest={await takesTestMoney(services, project)}
      closed={project.status !== "active"}
      formId={deps.id("form")}
      amounts={range.amounts.map((value) => ({ value, label: plain(value) }))}
      range={{ min: plain(range.min), max: plain(range.max) }}
      problem={shown.problem}
      entries={entries.map((entry) => ({ entry, currency }))}
    />
  );
  const formTargets = targetsOf(kind, checkoutUrl);
  const status = shown.problem === null ? 200 : 400;
  return pageResponse(status, String(html), { requestId, formTargets, brand });
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
    const { config } = services.deps;
    requireSameOrigin(request, config);
    const { ref, project } = await open(services, param("token"));
    const kind = checkoutKindOf(config, project);
    if (kind === "none") {
      throw new ApiError(405, {
        message: project.status === "active"
          ? "This app takes no payments."
          : "This app is closed, and takes no payments.",
        headers: { allow: "GET, HEAD" },
      });
    }
    const reader = readerOf(request);
    const form = await inTime(readForm(request, config));
    const read = readTopUp(form, { project, kind, reader });
    if ("problem" in read) {
      const { problem } = read;
      const page = { ref, project, request, requestId, returned: false, problem };
      return await topUpPage(services, page);
    }
    const { amount, formId } = read;
    switch (kind) {
      case "stripe": {
        const checkout = { project, ref, amount, formId, path, requestId };
        return seeOther(await startCheckout(services, checkout), requestId);
      }
      case "own": {
        const { checkoutUrl } = project.topUp;
        const values = { user: ref.user, project: project.id, amount: formatAmount(amount) };
        // Encoded as a URL: a header may not contain other characters.
        return seeOther(new URL(fillTemplate(checkoutUrl ?? "", values)).href, requestId);
      }
      case "sandbox":
        if (!isFromThisMachine(request)) {
          throw new ApiError(403, { message: "Payments are simulated on this machine only." });
        }
        await depositInSandbox(services, { ref, amount, formId });
        return seeOther(publicPath(config, `${path}?paid=yes`), requestId);
    }
  };
}

/** Returns the amounts of a project that can be paid there. */
function rangeOf({ topUp, currency }: Project, kind: CheckoutKind): TopUpRange {
  return payableTopUp(topUp, currency, kind === "stripe");
}

/**
 * Reads the submitted form. An amount that was entered counts before one that was chosen. Throws
 * 400 for a form of another page.
 */
function readTopUp(
  form: URLSearchParams,
  { project, kind, reader }: { project: Project; kind: CheckoutKind; reader: Reader },
): { amount: Amount; formId: string } | { problem: NonNullable<TopUpView["problem"]> } {
  const range = rangeOf(project, kind);
  const { step } = payableIn(project.currency, kind === "stripe");
  const other = form.get("other")?.trim() ?? "";
  const entered = other === "" ? form.get("amount") ?? "" : other;
  const amount = parseAmount(typedDecimal(entered));
  const money = (text: string) => reader.moneyText(parseAmount(text) ?? zero, project.currency);
  if (amount === null || !acceptsAmount({ topUp: { ...project.topUp, ...range } }, amount)) {
    const values = { min: money(range.min), max: money(range.max) };
    return { problem: { text: reader.text("chooseWithin", values), entered } };
  }
  if (amount % step !== 0n) {
    const text = reader.text("chooseSteps", { step: money(formatAmount(step)) });
    return { problem: { text, entered } };
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
