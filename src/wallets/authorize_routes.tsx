/** @jsxImportSource @hono/hono/jsx */

import { ApiError, badRequest } from "../base/errors.ts";
import { isAddressHost } from "../base/host.ts";
import type { Handler } from "../base/handler.ts";
import { publicPath } from "../config.ts";
import { type Amount, formatForPeople, parseAmount, typedDecimal, zero } from "../base/money.ts";
import { type Authorization, readAuthorization } from "../ledger/authorization.ts";
import { readBalance } from "../ledger/balance.ts";
import type { AuthorizationLink, Links } from "../paywall/links.ts";
import { readForm } from "../pages/form.ts";
import { asPage, pageResponse, seeOther } from "../pages/response.tsx";
import type { Project } from "../projects/schema.ts";
import { type Authorizations, isLinkSuperseded } from "./authorizations.ts";
import { type AuthorizeDecision, AuthorizePage, AuthorizeResultPage } from "./authorize_page.tsx";
import { walletScriptHash } from "./passkey_button.tsx";
import type { Deps } from "../deps.ts";
import type { DeviceCookies } from "./device_cookies.ts";
import type { ProjectCache } from "../projects/project_cache.ts";
import type { Passkeys } from "./passkeys.ts";

/**
 * The page where a person authorizes a project to charge their wallet. Reading it changes nothing.
 */
export function authorizeRoutes(services: WalletDeps): { show: Handler; decide: Handler } {
  const { config } = services.deps;
  return { show: asPage(show(services), config), decide: asPage(decide(services), config) };
}

interface OpenedLink {
  approval: AuthorizationLink;
  project: Project;
  last: Authorization | null;
}

/** Throws 404 for a link that is forged or has expired. */
async function openLink(
  { deps, projectCache, links }: WalletDeps,
  token: string,
): Promise<OpenedLink> {
  const approval = await links.readAuthorizationLink(token);
  if (!approval) throw linkEnded();
  const { project } = await projectCache.current(approval.projectId);
  const found = await readAuthorization(deps.kv, approval.projectId, approval.user);
  return { approval, project, last: found?.authorization ?? null };
}

function linkEnded(): ApiError {
  return new ApiError(404, {
    message: "Go back to your chat and send your message again: you will get a new link.",
  });
}

function show(services: WalletDeps): Handler {
  return async ({ request, param, query, requestId }) => {
    const { deviceCookies, links } = services;
    const { approval, project, last } = await openLink(services, param("token"));
    const { currency, name } = project;
    const known = await deviceCookies.known(request);
    const personId = known?.personId ?? null;
    const cookie = await known?.grant.cookie();
    if (last && isLinkSuperseded(approval, last)) {
      if (last.requestId !== approval.requestId) throw linkEnded();
      const decided = decidedFor(last, { personId, hasDeclined: query("declined") !== undefined });
      const topUpUrl = await links.topUpUrl(project, approval.user);
      const cap = formatForPeople(parseAmount(last.dailyCap) ?? zero, currency);
      const page = (
        <AuthorizeResultPage
          {...{
            decided,
            projectName: name,
            cap,
            topUpUrl,
            base: publicPath(services.deps.config, ""),
          }}
        />
      );
      return pageResponse(200, String(page), { requestId, cookie });
    }
    const caps = project.topUp.amounts.map((value) => ({
      value,
      label: formatForPeople(parseAmount(value) ?? zero, currency),
    }));
    const own = last?.status === "active" && last.personId === personId ? last : null;
    const html = (
      <AuthorizePage
        base={publicPath(services.deps.config, "")}
        offersPasskeys={!isAddressHost(services.deps.config.baseUrl)}
        projectName={name}
        user={approval.user}
        currency={currency}
        balance={personId === null ? null : await balanceOf(services, { personId, currency })}
        caps={caps}
        cap={own && formatForPeople(parseAmount(own.dailyCap) ?? zero, currency)}
      />
    );
    return pageResponse(200, String(html), {
      requestId,
      script: walletScriptHash,
      cookie: cookie ?? await newcomersCookie(request),
    });
  };

  /**
   * Set with the page, not with the decision, whose response may be lost: then no one could ever
   * open the wallet. A link preview learns nothing from it, and nothing is stored.
   */
  async function newcomersCookie(request: Request): Promise<string | undefined> {
    const has = await services.deviceCookies.newDevice(request);
    return has ? undefined : await services.deviceCookies.newDeviceCookie();
  }

  async function balanceOf(
    { deps }: WalletDeps,
    { personId, currency }: { personId: string; currency: string },
  ): Promise<string> {
    const wallet = { personId, currency, connectionId: "" };
    const ref = { projectId: "", user: "", wallet };
    const { balance } = await readBalance(deps.kv, ref, deps.clock.now());
    return formatForPeople(balance, currency);
  }
}

/** Someone who declines what another person authorized is shown their own wallet. */
function decidedFor(
  { status, personId: payer }: Authorization,
  { personId, hasDeclined }: { personId: string | null; hasDeclined: boolean },
): AuthorizeDecision {
  if (status !== "active") return "declined";
  if (payer === personId) return "approved";
  return hasDeclined ? "declined" : "elsewhere";
}

function decide(services: WalletDeps): Handler {
  return async ({ request, param, path, requestId, inTime }) => {
    const { deps, deviceCookies, authorizations } = services;
    const form = await inTime(readForm(request, deps.config));
    const { approval, project } = await openLink(services, param("token"));
    if (project.status !== "active") {
      throw new ApiError(403, { message: "This app is closed." });
    }
    const known = await deviceCookies.known(request);
    switch (form.get("decision")) {
      case "decline":
        await authorizations.decline(approval, known?.personId ?? null);
        return seeOther(publicPath(deps.config, `${path}?declined=yes`), requestId);
      case "approve": {
        const { personId, grant } = known ?? await deviceCookies.newDevice(request) ??
          needCookies();
        const dailyCap = parseDailyCap(form.get("other") || form.get("cap"));
        const done = await authorizations.approve(approval, { personId, dailyCap });
        // Sent twice, or from two tabs: the first decision counts, and the page shows it.
        const cookies = done ? [await grant.cookie()] : [];
        return seeOther(publicPath(deps.config, path), requestId, cookies);
      }
      default:
        throw badRequest("decision", "Choose one of the two buttons.");
    }
  };
}

function needCookies(): never {
  throw new ApiError(400, {
    message: "Your browser sent no cookie, and without one you could not open your wallet again. " +
      "Allow cookies for this site, then decide again.",
  });
}

const capMax = 1_000_000;

/** Parses a cap as a person typed it. Throws 400. */
export function parseDailyCap(text: string | null): Amount {
  const cap = parseAmount(typedDecimal(text ?? ""));
  if (cap !== null && cap > 0n && cap <= BigInt(capMax) * 1_000_000_000n) return cap;
  throw badRequest("cap", `Choose an amount above 0 and at most ${capMax}.`);
}

/** What the wallet pages depend on. */
export interface WalletDeps {
  deps: Deps;
  projectCache: ProjectCache;
  links: Links;
  deviceCookies: DeviceCookies;
  authorizations: Authorizations;
  passkeys: Passkeys;
}
