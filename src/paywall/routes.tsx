/** @jsxImportSource @hono/hono/jsx */
import { ApiError } from "../base/errors.ts";
import type { Handler } from "../base/handler.ts";
import { formatForPeople, parseAmount, toAmount, unit } from "../base/money.ts";
import type { Deps } from "../deps.ts";
import { readBalance } from "../ledger/balance.ts";
import type { Post } from "../ledger/post.ts";
import type { Directory } from "../projects/directory.ts";
import type { Links } from "./link.ts";
import { MessagePage, TopUpPage } from "./page.tsx";

interface PaywallRooms {
  deps: Deps;
  directory: Directory;
  links: Links;
  post: Post;
}

const sandboxAmounts = [5n, 10n, 25n].map((units) => toAmount(units * unit));
const formBytesMax = 4096;

/** The pages that a person opens from a paywall message. Reading one changes nothing. */
export function paywallRoutes(rooms: PaywallRooms) {
  return { showTopUp: showTopUp(rooms), sandboxCheckout: sandboxCheckout(rooms) };
}

function showTopUp({ deps, directory, links }: PaywallRooms): Handler {
  return async ({ param, requestId }) => {
    const subject = await links.read(param("token"));
    if (!subject) return badLink(requestId);
    const { project } = await directory.current(subject.projectId);
    const { balance } = await readBalance(deps.kv, subject, deps.clock.now());
    const page = (
      <TopUpPage
        projectName={project.name}
        user={subject.user}
        balanceFormatted={formatForPeople(balance, project.currency)}
        sandbox={deps.config.dev}
        formId={deps.id("req")}
        amounts={sandboxAmounts.map((amount) => ({
          value: String(amount / unit),
          label: formatForPeople(amount, project.currency),
        }))}
      />
    );
    return pageResponse(200, String(page), requestId);
  };
}

/** Development's own checkout: books a deposit, once for each page however often it is sent. */
function sandboxCheckout({ deps, links, post }: PaywallRooms): Handler {
  return async ({ request, param, path, requestId }) => {
    if (!deps.config.dev) {
      throw new ApiError(405, { message: "Nothing can be paid here.", headers: { allow: "GET" } });
    }
    const subject = await links.read(param("token"));
    if (!subject) return badLink(requestId);
    const length = Number(request.headers.get("content-length") ?? formBytesMax + 1);
    if (length > formBytesMax) throw new ApiError(413, { message: "The form is too large." });
    const form = new URLSearchParams(await request.text());
    const amount = parseAmount(form.get("amount"));
    if (amount === null || !sandboxAmounts.includes(amount)) {
      throw new ApiError(400, { message: "Choose one of the amounts on the page." });
    }
    const formId = form.get("formId") ?? requestId;
    const key = `sandbox:${formId.slice(0, 64)}`;
    const actor = { actorType: "end-user" as const, actorId: subject.user };
    const origin = { trigger: { source: "checkout" as const, ...actor }, source: "sandbox" };
    await post.deposit({ ref: subject, amount, metadata: { source: "sandbox" }, key, origin });
    return new Response(null, {
      status: 303,
      headers: { location: path, "x-request-id": requestId, "cache-control": "no-store" },
    });
  };
}

function badLink(requestId: string): Response {
  const title = "This link is no longer valid";
  const text = "Go back to your chat and send your message again: you will get a new link.";
  return pageResponse(404, String(<MessagePage title={title} text={text} />), requestId);
}

/** A personal page: not stored, not framed, loads nothing, and tells no one where it was opened. */
function pageResponse(status: number, page: string, requestId: string): Response {
  return new Response(`<!doctype html>${page}`, {
    status,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy":
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
      "cache-control": "no-store",
      "x-request-id": requestId,
    },
  });
}
