/** @jsxImportSource @hono/hono/jsx */
import { ApiError, badRequest } from "../base/errors.ts";
import type { Handler } from "../base/handler.ts";
import { type Amount, formatAmount, formatForPeople, parseAmount, zero } from "../base/money.ts";
import { listActivities } from "../ledger/activities.ts";
import { readBalance } from "../ledger/balance.ts";
import type { Entry } from "../ledger/entry.ts";
import type { Project } from "../projects/schema.ts";
import { startCheckout } from "./checkout.ts";
import { fillTemplate, type LinkSubject } from "./link.ts";
import { TopUpPage } from "./page.tsx";
import { asPage, pageResponse, seeOther } from "./page_response.tsx";
import type { PaywallRooms } from "./rooms.ts";
import { takes } from "./stripe.ts";
import { stripeWebhook } from "./stripe_webhook.ts";

const formBytesMax = 4096;
const activitiesShown = 20;
const stripeCheckout = "https://checkout.stripe.com";

/** The pages that a person opens from a paywall message. Reading one changes nothing. */
export function paywallRoutes(rooms: PaywallRooms) {
  return {
    showTopUp: asPage(showTopUp(rooms)),
    startTopUp: asPage(startTopUp(rooms)),
    stripeWebhook: stripeWebhook(rooms),
  };
}

/** The page's project and user. Throws 404 for a link that is forged or has ended. */
async function open({ directory, links }: PaywallRooms, token: string) {
  const subject = await links.read(token);
  if (!subject) {
    throw new ApiError(404, {
      message: "Go back to your chat and send your message again: you will get a new link.",
    });
  }
  return { subject, project: (await directory.current(subject.projectId)).project };
}

/** Where this project's users pay. */
function checkoutOf({ deps: { config } }: PaywallRooms, { stripe, topUp, status }: Project) {
  if (status !== "active") return "none";
  if (stripe) return "stripe";
  if (topUp.checkoutUrl !== null) return "own";
  return config.dev ? "sandbox" : "none";
}

function showTopUp(rooms: PaywallRooms): Handler {
  return async ({ param, requestId }) => {
    const { deps } = rooms;
    const { subject, project } = await open(rooms, param("token"));
    const { currency, topUp } = project;
    const { balance } = await readBalance(deps.kv, subject, deps.clock.now());
    const page = { limit: activitiesShown, cursor: undefined };
    const { entries } = await listActivities(deps.kv, subject, page);
    const kind = checkoutOf(rooms, project);
    const html = (
      <TopUpPage
        projectName={project.name}
        user={subject.user}
        balanceFormatted={formatForPeople(balance, currency)}
        checkout={kind === "none" || kind === "sandbox" ? kind : "checkout"}
        formId={deps.id("form")}
        amounts={topUp.amounts.map((value) => ({
          value,
          label: formatForPeople(parseAmount(value) ?? zero, currency),
        }))}
        range={{ min: topUp.min, max: topUp.max, currency }}
        activities={entries.map((entry) => activityForPeople(entry, currency))}
      />
    );
    const own = topUp.checkoutUrl === null ? [] : [new URL(topUp.checkoutUrl).origin];
    const formTargets = kind === "stripe" ? [stripeCheckout] : kind === "own" ? own : [];
    return pageResponse(200, String(html), { requestId, formTargets });
  };
}

const kinds: Record<Entry["kind"], string> = {
  deposit: "Added",
  charge: "Charge",
  usage: "Answer",
  refund: "Refund",
  trial: "Trial credit",
  expired: "Answer, broken off",
};

function activityForPeople({ createdAt, kind, usage, delta }: Entry, currency: string) {
  const at = new Date(createdAt).toISOString();
  const what = usage ? `${kinds[kind]} (${usage.model})` : kinds[kind];
  return { at, day: at.slice(0, 16).replace("T", " "), what, amount: `${delta} ${currency}` };
}

/** A form of the page: leads to the checkout, which is made now and not before. */
function startTopUp(rooms: PaywallRooms): Handler {
  return async ({ request, param, path, requestId }) => {
    requireSameOrigin(request);
    const { subject, project } = await open(rooms, param("token"));
    const kind = checkoutOf(rooms, project);
    if (kind === "none") {
      throw new ApiError(405, { message: "Nothing can be paid here.", headers: { allow: "GET" } });
    }
    const { amount, formId } = await readForm(request, project);
    switch (kind) {
      case "stripe":
        return seeOther(
          await startCheckout(rooms, { project, subject, amount, formId, path }),
          requestId,
        );
      case "own": {
        const { checkoutUrl } = project.topUp;
        const values = { user: subject.user, project: project.id, amount: formatAmount(amount) };
        return seeOther(fillTemplate(checkoutUrl ?? "", values), requestId);
      }
      case "sandbox":
        await depositInSandbox(rooms, { subject, amount, formId });
        return seeOther(path, requestId);
    }
  };
}

/** A page of another site must not send our forms. Browsers say where a form came from. */
function requireSameOrigin(request: Request): void {
  const site = request.headers.get("sec-fetch-site");
  if (site === null || site === "same-origin" || site === "none") return;
  throw new ApiError(403, { message: "This form was sent by another site." });
}

async function readForm(
  request: Request,
  project: Project,
): Promise<{ amount: Amount; formId: string }> {
  const length = Number(request.headers.get("content-length") ?? formBytesMax + 1);
  if (length > formBytesMax) throw new ApiError(413, { message: "The form is too large." });
  const form = new URLSearchParams(await request.text());
  const amount = parseAmount((form.get("amount") ?? "").trim().replace(",", "."));
  const { min, max } = project.topUp;
  if (amount === null || !takes(project, amount)) {
    const currency = project.currency.toUpperCase();
    throw badRequest("amount", `Choose an amount from ${min} to ${max} ${currency}.`);
  }
  const formId = form.get("formId") ?? "";
  if (!/^form_[0-9A-Z]{26}$/.test(formId)) {
    throw badRequest("formId", "The page is too old. Open it again from your chat.");
  }
  return { amount, formId };
}

/** Development's own checkout: books at once, once for each page however often it is sent. */
async function depositInSandbox(
  { post }: PaywallRooms,
  { subject, amount, formId }: { subject: LinkSubject; amount: Amount; formId: string },
): Promise<void> {
  const actor = { actorType: "end-user" as const, actorId: subject.user };
  await post.deposit({
    ref: subject,
    amount,
    metadata: { source: "sandbox" },
    key: `sandbox:${formId}`,
    origin: { trigger: { source: "checkout", ...actor }, source: "sandbox" },
  });
}
